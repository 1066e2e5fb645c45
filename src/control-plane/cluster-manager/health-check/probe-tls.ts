// How the checks of one cluster are secured: by the contexts that its traffic has, or those that the checks choose for
// themselves. Handshakes count among those of the cluster. Main thread. Owned by the checker.

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import {
  type ClusterSettings,
  type HealthCheckSettings,
  type Metadata,
  socketMatchOf,
  type UpstreamTlsSettings,
  upstreamContextsOf,
} from '../../../snapshot/index.ts';
import { type StatsStore, TLS_STATS } from '../../../stats/index.ts';
import { ClientTls, type TlsTarget } from '../../../tls/client-tls.ts';
import { isOpensslError } from '../../../tls/failure.ts';
import { REFUSAL_STATS, refusalText } from '../../../tls/refusal.ts';

export type SecuredCluster = Pick<ClusterSettings, 'statName' | 'tls' | 'transportSocketMatches'>;

/** What probes of one host ask. */
export interface ProbeSecurity {
  /** @param protocols what the probe speaks, for settings that offer nothing by ALPN. */
  begin(raw: Socket, label: string, protocols: readonly string[]): ProbeHandshake;
}

/** One handshake. */
export interface ProbeHandshake {
  readonly socket: TLSSocket;
  /** It is done. @returns why the host is refused; undefined when it is not. */
  judge(): string | undefined;
  /** It has failed. */
  noteFailure(error: NodeJS.ErrnoException): void;
}

export class ProbeTls {
  readonly #check: Pick<HealthCheckSettings, 'alpnProtocols' | 'transportMetadata'>;
  readonly #matches: ClusterSettings['transportSocketMatches'];
  readonly #stats;
  /** By place (upstreamContextsOf). */
  readonly #clients: (ClientTls | undefined)[];

  constructor(cluster: SecuredCluster, check: HealthCheckSettings, stats: Pick<StatsStore, 'scope'>) {
    this.#check = check;
    this.#matches = cluster.transportSocketMatches;
    this.#stats = stats.scope(`cluster.${cluster.statName}.ssl.`).allocate(TLS_STATS);
    this.#clients = upstreamContextsOf(cluster).map((tls) => tls && new ClientTls(tls));
  }

  /** For connections from now on. @param changed by place; of those that are there. */
  update(changed: ReadonlyMap<number, UpstreamTlsSettings>): void {
    for (const [place, settings] of changed) this.#clients[place] = new ClientTls(settings);
  }

  /** @returns undefined where checks go in cleartext. */
  of(host: { readonly hostname: string; readonly metadata?: Metadata | undefined }): ProbeSecurity | undefined {
    const { alpnProtocols, transportMetadata } = this.#check;
    const matches = this.#matches ?? [];
    const client = this.#clients[1 + socketMatchOf(matches, transportMetadata ?? host.metadata)];
    if (client === undefined) return undefined;
    const own = alpnProtocols ?? client.settings.alpnProtocols;
    return {
      begin: (raw, label, protocols) => {
        const offered = own.length === 0 ? protocols : own;
        const target = { label, sentName: '', verifiedName: '', hostname: host.hostname, alpnProtocols: offered };
        return this.#begin(client, raw, target);
      },
    };
  }

  #begin(client: ClientTls, raw: Socket, target: TlsTarget): ProbeHandshake {
    const socket = client.begin(raw, target);
    return {
      socket,
      judge: () => {
        const peer = client.judge(socket, target);
        if (peer.fault !== null) {
          this.#stats.add(REFUSAL_STATS[peer.fault]);
          return refusalText(peer.fault, peer);
        }
        this.#stats.add('handshake');
        if (socket.isSessionReused()) this.#stats.add('session_reused');
        if (peer.certificate === null) this.#stats.add('no_certificate');
        return undefined;
      },
      noteFailure: (error) => {
        if (isOpensslError(error)) this.#stats.add('connection_error');
      },
    };
  }
}
