// How the connections of a cluster are secured that have one transport socket of it, in this worker: its contexts and
// sessions, and what is counted of handshakes. Owned by the cluster.

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { parseIp } from '../../../base/ip-number.ts';
import type { UpstreamTlsSettings } from '../../../snapshot/index.ts';
import { SSL_SOCKET_FACTORY_STATS, TLS_STATS } from '../../../stats/index.ts';
import { ClientTls, type TlsTarget } from '../../../tls/client-tls.ts';
import { curveOf } from '../../../tls/curve-name.ts';
import { isOpensslError, notReadyFault, peerRefusal, type TlsError } from '../../../tls/failure.ts';
import type { PeerFault } from '../../../tls/peer-verifier.ts';
import { REFUSAL_STATS, refusalText } from '../../../tls/refusal.ts';
import { KeyLog } from '../../listener/tls/key-log.ts';
import { ConnectionTls } from '../../network/tls/connection-tls.ts';
import type { WorkerContext } from '../../worker-context.ts';

const stats = TLS_STATS.index;

/** In this worker's slab. */
export interface UpstreamTlsCells {
  /** First cell of TLS_STATS. */
  readonly tls: number;
  /** Of SSL_SOCKET_FACTORY_STATS. */
  readonly factory: number;
}

export class UpstreamTls {
  readonly #context: WorkerContext;
  readonly #bases: UpstreamTlsCells;
  /** Of the cluster, with its final dot. */
  readonly #scope: string;
  #client: ClientTls;
  #keyLog: KeyLog | null = null;

  constructor(context: WorkerContext, settings: UpstreamTlsSettings, bases: UpstreamTlsCells, scope: string) {
    this.#context = context;
    this.#bases = bases;
    this.#scope = scope;
    this.#client = new ClientTls(settings);
    this.#openKeyLog();
  }

  get settings(): UpstreamTlsSettings {
    return this.#client.settings;
  }

  /** For connections from now on; what was agreed on under other settings is forgotten. */
  update(settings: UpstreamTlsSettings): void {
    this.#client = new ClientTls(settings);
    this.#openKeyLog();
  }

  /** Asked once for each handshake. @returns why it may not begin: secrets are missing that none goes without. */
  refuse(): TlsError | undefined {
    const { missingSecrets } = this.settings;
    if (missingSecrets.length === 0) return undefined;
    const { upstream_context_secrets_not_ready: row } = SSL_SOCKET_FACTORY_STATS.index;
    this.#context.stats.values[this.#bases.factory + row]! += 1;
    return notReadyFault(missingSecrets);
  }

  /** Begins a handshake. Whoever is told of `secureConnect` calls `judge` of the handshake. */
  begin(raw: Socket, target: TlsTarget): ClientHandshake {
    const handshake = new ClientHandshake(this, this.#client, raw, target);
    const ends = { localIp: parseIp(raw.localAddress ?? ''), remoteIp: parseIp(raw.remoteAddress ?? '') };
    this.#keyLog?.watch(handshake.socket, ends);
    return handshake;
  }

  /** A handshake did not come to its end. */
  noteFailure(error: NodeJS.ErrnoException): void {
    if (isOpensslError(error)) this.#count(stats.connection_error);
  }

  noteRefusal(fault: NonNullable<PeerFault>): void {
    this.#count(stats[REFUSAL_STATS[fault]]);
  }

  noteAgreed(socket: TLSSocket, { version, cipher, isResumed, peer }: ConnectionTls): void {
    this.#count(stats.handshake);
    if (isResumed) this.#count(stats.session_reused);
    if (peer === null) this.#count(stats.no_certificate);
    this.#countNamed(`ciphers.${cipher}`);
    this.#countNamed(`versions.${version}`);
    const curve = curveOf(socket);
    if (curve !== undefined) this.#countNamed(`curves.${curve}`);
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#bases.tls + stat]! += 1;
  }

  #openKeyLog(): void {
    const { keyLog } = this.settings;
    this.#keyLog = keyLog && new KeyLog(keyLog, this.#context.logs.connection);
  }

  #countNamed(name: string): void {
    this.#context.stats.dynamicCounter(this.#scope, `ssl.${name}`).add();
  }
}

export class ClientHandshake {
  readonly socket: TLSSocket;
  readonly #tls: UpstreamTls;
  readonly #client: ClientTls;
  readonly #target: TlsTarget;

  constructor(tls: UpstreamTls, client: ClientTls, raw: Socket, target: TlsTarget) {
    this.#tls = tls;
    this.#client = client;
    this.#target = target;
    this.socket = client.begin(raw, target);
  }

  /** The handshake is done. @returns what is known of the connection from now on, or why the server is refused. */
  judge(): ConnectionTls | TlsError {
    const { socket } = this;
    const peer = this.#client.judge(socket, this.#target);
    const { certificate, fault } = peer;
    if (fault !== null) {
      this.#tls.noteRefusal(fault);
      return peerRefusal(refusalText(fault, peer));
    }
    const tls = new ConnectionTls(socket, certificate, this.#client.verifiesPeer);
    this.#tls.noteAgreed(socket, tls);
    return tls;
  }
}
