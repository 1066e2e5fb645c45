// STATIC: the members are in the configuration, and never change.

import type { HostSettings } from '../../../snapshot/index.ts';
import type { Discovery, DiscoveryListener } from './discovery.ts';

export class StaticDiscovery implements Discovery {
  readonly #hosts: readonly HostSettings[];
  readonly #listener: DiscoveryListener;

  constructor(hosts: readonly HostSettings[], listener: DiscoveryListener) {
    this.#hosts = hosts;
    this.#listener = listener;
  }

  start(): void {
    this.#listener.onHosts(this.#hosts);
    this.#listener.onReady();
  }

  stop(): void {}
}
