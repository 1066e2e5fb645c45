// The servers of a Redis cluster, found by code that is loaded when the first cluster of that kind starts: a start without one has no use for
// it. Main thread.

import type { Discovery } from './discovery.ts';
import type { RedisClusterDiscovery } from './redis-cluster.ts';

export class LateRedisCluster implements Discovery {
  readonly #given: ConstructorParameters<typeof RedisClusterDiscovery>;
  #discovery: RedisClusterDiscovery | undefined;
  #isStopped = false;

  constructor(...given: ConstructorParameters<typeof RedisClusterDiscovery>) {
    this.#given = given;
  }

  start(): void {
    const [name, , , { faults }] = this.#given;
    faults.run(`the start of cluster ${name}`, async () => {
      const { RedisClusterDiscovery } = await import('../../at-need.ts');
      if (this.#isStopped) return;
      this.#discovery = new RedisClusterDiscovery(...this.#given);
      this.#discovery.start();
    });
  }

  stop(): void {
    this.#isStopped = true;
    this.#discovery?.stop();
  }

  /** As of RedisClusterDiscovery. */
  strangerNamed(): void {
    this.#discovery?.strangerNamed();
  }
}
