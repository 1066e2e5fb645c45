// What is counted of the stream to a management server. Main thread.

import { CONTROL_PLANE_IDENTIFIER, CONTROL_PLANE_STATS, type StatsStore } from '../../stats/index.ts';

export class ControlPlaneStats {
  readonly #block;
  readonly #identifier;

  /** @param prefix with its dot; empty for the stream of all types. */
  constructor(stats: Pick<StatsStore, 'scope'>, prefix: string) {
    const scope = stats.scope(`${prefix}control_plane.`);
    this.#block = scope.allocate(CONTROL_PLANE_STATS);
    this.#identifier = scope.textReadout(CONTROL_PLANE_IDENTIFIER);
  }

  connected(isConnected: boolean): void {
    this.#block.set('connected_state', isConnected ? 1 : 0);
  }

  /** Requests wait for the limit of their rate. */
  limited(requests: number): void {
    this.#block.add('rate_limit_enforced');
    this.pending(requests);
  }

  pending(requests: number): void {
    this.#block.set('pending_requests', requests);
  }

  /** @param name that the server gives itself; empty for none. */
  identified(name: string): void {
    if (name !== '') this.#identifier.set(name);
  }
}
