// The transport sockets of a cluster in this worker: that of the cluster itself, and those that hosts have by their metadata.

import {
  type ClusterSnapshot,
  type Metadata,
  socketMatchOf,
  type UpstreamTlsSettings,
  upstreamContextsOf,
} from '../../../snapshot/index.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { UpstreamTls } from './upstream-tls.ts';

export class Transports {
  readonly #matches: ClusterSnapshot['settings']['transportSocketMatches'];
  /** That of the cluster, then those of the matches. */
  readonly #byPlace: readonly (UpstreamTls | null)[];

  private constructor(context: WorkerContext, { settings, tlsBlock, tlsFactoryBlock }: ClusterSnapshot, scope: string) {
    const bases = { tls: context.stats.base(tlsBlock), factory: context.stats.base(tlsFactoryBlock) };
    this.#matches = settings.transportSocketMatches;
    this.#byPlace = upstreamContextsOf(settings).map((tls) =>
      tls === undefined ? null : new UpstreamTls(context, tls, bases, scope),
    );
  }

  /** @param scope of the cluster's stats, with its final dot. @returns null where no connection is secured. */
  static of(context: WorkerContext, snapshot: ClusterSnapshot, scope: string): Transports | null {
    const isSecured = upstreamContextsOf(snapshot.settings).some((tls) => tls !== undefined);
    return isSecured ? new Transports(context, snapshot, scope) : null;
  }

  of(metadata: Metadata | undefined): UpstreamTls | null {
    const own = this.#byPlace[0] ?? null;
    if (this.#matches === undefined) return own;
    const at = socketMatchOf(this.#matches, metadata);
    return at === -1 ? own : this.#byPlace[at + 1]!;
  }

  /** For connections from now on. @param changed by place; of those that are there. */
  update(changed: ReadonlyMap<number, UpstreamTlsSettings>): void {
    for (const [place, settings] of changed) this.#byPlace[place]!.update(settings);
  }
}
