// How the checks of one cluster are secured: by the contexts that its traffic has, or those that the checks choose for
// themselves. Handshakes wait for their turn, and count among those of the cluster. Main thread. Owned by the checker.

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
import { HEALTH_CHECK_STATS, SSL_SOCKET_FACTORY_STATS, type StatsStore, TLS_STATS } from '../../../stats/index.ts';
import { ClientTls, type TlsTarget } from '../../../tls/client-tls.ts';
import { curveOf } from '../../../tls/curve-name.ts';
import { isOpensslError, notReadyText } from '../../../tls/failure.ts';
import { REFUSAL_STATS, refusalText } from '../../../tls/refusal.ts';
import type { HandshakeTurn, HandshakeTurns } from './handshake-turns.ts';

export type SecuredCluster = Pick<ClusterSettings, 'statName' | 'tls' | 'transportSocketMatches'>;

/** What checks choose for themselves. */
type SecuredCheck = Partial<Pick<HealthCheckSettings, 'alpnProtocols' | 'transportMetadata'>>;

/** The check that asks for handshakes. */
export interface AwaitingCheck {
  /** It waits for its turn: that is none of the host's time. */
  hold(): void;
  /** It does so no more; after `hold`. */
  goOn(): void;
}

/** What probes of one host ask. */
export interface ProbeSecurity {
  /** Asked once for each handshake. @returns why it may not begin; undefined when it may. */
  refuse(): string | undefined;
  /** @param begin called once, now or later, unless the turn ends before. */
  awaitTurn(begin: () => void): HandshakeTurn;
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
  readonly #check: SecuredCheck;
  readonly #matches: ClusterSettings['transportSocketMatches'];
  readonly #turns: HandshakeTurns;
  readonly #stats;
  readonly #factoryStats;
  readonly #checkStats;
  readonly #scope;
  /** By place (upstreamContextsOf). */
  readonly #clients: (ClientTls | undefined)[];

  constructor(cluster: SecuredCluster, check: SecuredCheck, stats: Pick<StatsStore, 'scope'>, turns: HandshakeTurns) {
    const prefix = `cluster.${cluster.statName}.`;
    this.#check = check;
    this.#matches = cluster.transportSocketMatches;
    this.#turns = turns;
    this.#stats = stats.scope(`${prefix}ssl.`).allocate(TLS_STATS);
    this.#factoryStats = stats.scope(`${prefix}client_ssl_socket_factory.`).allocate(SSL_SOCKET_FACTORY_STATS);
    this.#checkStats = stats.scope(`${prefix}health_check.`).allocate(HEALTH_CHECK_STATS);
    // Workers name the same stats below the same prefix.
    this.#scope = stats.scope(prefix);
    this.#clients = upstreamContextsOf(cluster).map((tls) => tls && new ClientTls(tls));
  }

  /** For connections from now on. @param changed by place; of those that are there. */
  update(changed: ReadonlyMap<number, UpstreamTlsSettings>): void {
    for (const [place, settings] of changed) this.#clients[place] = new ClientTls(settings);
  }

  /** @returns undefined where checks go in cleartext. */
  of(
    host: { readonly hostname: string; readonly metadata?: Metadata | undefined },
    check: AwaitingCheck,
  ): ProbeSecurity | undefined {
    const { alpnProtocols, transportMetadata } = this.#check;
    const place = 1 + socketMatchOf(this.#matches ?? [], transportMetadata ?? host.metadata);
    if (this.#clients[place] === undefined) return undefined;
    return {
      refuse: () => {
        const { missingSecrets } = this.#clients[place]!.settings;
        if (missingSecrets.length === 0) return undefined;
        this.#factoryStats.add('upstream_context_secrets_not_ready');
        return notReadyText(missingSecrets);
      },
      awaitTurn: (begin) => this.#awaitTurn(check, begin),
      begin: (raw, label, protocols) => {
        // Not before: while the handshake waited for its turn, settings may have come anew.
        const client = this.#clients[place]!;
        const own = alpnProtocols ?? client.settings.alpnProtocols;
        const offered = own.length === 0 ? protocols : own;
        const target = { label, sentName: '', verifiedName: '', hostname: host.hostname, alpnProtocols: offered };
        return this.#begin(client, raw, target);
      },
    };
  }

  #awaitTurn(check: AwaitingCheck, begin: () => void): HandshakeTurn {
    let isBegun = false;
    let isHeld = false;
    const goOn = (): void => {
      if (isHeld) check.goOn();
      isHeld = false;
    };
    const turn = this.#turns.ask(() => {
      isBegun = true;
      goOn();
      begin();
    });
    if (!isBegun) {
      isHeld = true;
      check.hold();
      this.#checkStats.add('handshake_queued');
    }
    return {
      end: () => {
        turn.end();
        goOn();
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
        this.#countNames(socket);
        return undefined;
      },
      noteFailure: (error) => {
        if (isOpensslError(error)) this.#stats.add('connection_error');
      },
    };
  }

  #countNames(socket: TLSSocket): void {
    const curve = curveOf(socket);
    const names = [`ciphers.${socket.getCipher().name}`, `versions.${socket.getProtocol()}`];
    if (curve !== undefined) names.push(`curves.${curve}`);
    try {
      for (const name of names) this.#scope.counter(`ssl.${name}`).add();
    } catch {
      // No room for another name: as with traffic, nothing else depends on it.
    }
  }
}
