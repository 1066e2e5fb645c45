// The transport sockets of a cluster in this worker: that of the cluster itself, and those that hosts have by their metadata.

import {
  type ClusterSnapshot,
  type Metadata,
  socketMatchOf,
  type UpstreamTlsSettings,
} from '../../../snapshot/index.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { UpstreamTls } from './upstream-tls.ts';

export class Transports {
  readonly #snapshot: ClusterSnapshot;
  readonly #default: UpstreamTls | null;
  /** By the places of the matches. */
  readonly #matched: readonly (UpstreamTls | null)[];

  private constructor(context: WorkerContext, snapshot: ClusterSnapshot, scope: string) {
    const statBase = context.stats.base(snapshot.tlsBlock);
    const make = (tls: UpstreamTlsSettings | undefined): UpstreamTls | null =>
      tls === undefined ? null : new UpstreamTls(context, tls, statBase, scope);
    const { tls, transportSocketMatches = [] } = snapshot.settings;
    this.#snapshot = snapshot;
    this.#default = make(tls);
    this.#matched = transportSocketMatches.map((match) => make(match.tls));
  }

  /** @param scope of the cluster's stats, with its final dot. @returns null where no connection is secured. */
  static of(context: WorkerContext, snapshot: ClusterSnapshot, scope: string): Transports | null {
    const { tls, transportSocketMatches = [] } = snapshot.settings;
    const isSecured = tls !== undefined || transportSocketMatches.some((match) => match.tls !== undefined);
    return isSecured ? new Transports(context, snapshot, scope) : null;
  }

  of(metadata: Metadata | undefined): UpstreamTls | null {
    const { transportSocketMatches } = this.#snapshot.settings;
    if (transportSocketMatches === undefined) return this.#default;
    const at = socketMatchOf(transportSocketMatches, metadata);
    return at === -1 ? this.#default : this.#matched[at]!;
  }
}
