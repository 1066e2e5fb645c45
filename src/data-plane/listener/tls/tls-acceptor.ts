// Secures the connections of one filter chain before its terminal filter gets them, which then reads and writes a TLS socket
// as it would any other.
//
//   accept ─► SHAKING ──done, and the peer's certificate is right──► SECURED, the terminal filter goes on
//                └──alert, wrong certificate, peer gone, time over──► CLOSED, counted
//
// What a handshake holds is OpenSSL's: bounded by the longest message that it takes, 100 KiB with certificates.

import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { TLSSocket, TLSSocketOptions } from 'node:tls';
import type { DownstreamTlsSettings, DownstreamTlsSnapshot, TlsCertificateSettings } from '../../../snapshot/index.ts';
import { TLS_STATS } from '../../../stats/index.ts';
import { isOpensslError, tlsFailureText } from '../../../tls/failure.ts';
import { type PeerFault, PeerVerifier } from '../../../tls/peer-verifier.ts';
import { type Arrival, ArrivalTimer } from '../../network/arrival-timer.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import { layOver, releaseAccepted } from '../../network/socket-events.ts';
import { type CertificateFacts, ConnectionTls, certificateFacts } from '../../network/tls/connection-tls.ts';
import { derText, ServerContexts } from '../../network/tls/server-contexts.ts';
import { isPeerTrusted, OcspStapler, secureServerSocket, serverSocketOptions } from '../../network/tls/tls-sockets.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { KeyLog } from './key-log.ts';

/** As loggers know this file. */
const FILE = 'src/data-plane/listener/tls/tls-acceptor.ts';

const stats = TLS_STATS.index;

const FAULT_STATS: Readonly<Record<NonNullable<PeerFault>, number>> = {
  untrusted: stats.fail_verify_error,
  hash: stats.fail_verify_cert_hash,
  name: stats.fail_verify_san,
};
const PEER_LEFT = 'the client has left before the handshake was done';
const NO_CERTIFICATE = 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE';

/** Whoever gets connections that are secured. */
export interface SecuredOwner {
  onSecured(connection: DownstreamConnection): void;
  /** It will never be, and is about to be told of as closed. */
  onUnsecured(connection: DownstreamConnection): void;
  onHandshakeTimeout(): void;
}

export class TlsAcceptor {
  readonly context: WorkerContext;
  readonly owner: SecuredOwner;
  /** 0 for no limit. */
  readonly timeoutMs: number;
  readonly #statScope: string;
  readonly #statBase: number;
  readonly #shaking = new Set<Handshake>();
  #settings: DownstreamTlsSettings;
  #verifier: PeerVerifier | null = null;
  #options!: TLSSocketOptions;
  #keyLog: KeyLog | null = null;
  /** Null where there are several certificates. */
  #own: CertificateFacts | null = null;

  /** @param timeoutMs 0 for no limit. */
  constructor(context: WorkerContext, snapshot: DownstreamTlsSnapshot, timeoutMs: number, owner: SecuredOwner) {
    this.context = context;
    this.owner = owner;
    this.timeoutMs = timeoutMs;
    this.#statScope = snapshot.statScope;
    context.stats.openScope(this.#statScope);
    this.#statBase = context.stats.base(snapshot.statBlock);
    this.#settings = snapshot.settings;
    this.update(snapshot);
  }

  get connectionCount(): number {
    return this.#shaking.size;
  }

  /** For handshakes from now on. */
  update({ settings, ticketKeys }: Pick<DownstreamTlsSnapshot, 'settings' | 'ticketKeys'>): void {
    const contexts = new ServerContexts(settings, ticketKeys);
    const { validation, requiresClientCertificate, alpnProtocols } = settings;
    this.#settings = settings;
    this.#verifier = validation && new PeerVerifier(validation);
    this.#own =
      settings.certificates.length === 1 ? certificateFacts(new X509Certificate(settings.certificates[0]!.leaf)) : null;
    const find = (name: string) => contexts.find(name);
    this.#options = serverSocketOptions({
      secureContext: contexts.first,
      alpnProtocols,
      requestsCertificate: validation !== null || requiresClientCertificate,
      requiresCertificate: requiresClientCertificate,
      findContext: contexts.isSimple ? null : find,
      stapler: contexts.stapled && new OcspStapler(contexts.first, this.#stapling(contexts.stapled, settings)),
    });
    this.#keyLog = settings.keyLog && new KeyLog(settings.keyLog, this.context.logs.connection);
  }

  accept(connection: DownstreamConnection): void {
    this.#shaking.add(new Handshake(this, connection, this.#options));
  }

  destroyConnections(): void {
    for (const handshake of this.#shaking) handshake.destroy();
  }

  /** The process ends: handshakes go on for as long as they may, but for those that do not begin. */
  endSilent(): void {
    for (const handshake of this.#shaking) handshake.endIfSilent();
  }

  /** Once, when nothing comes any more. */
  close(): void {
    this.context.stats.closeScope(this.#statScope);
  }

  /** Before the first byte of the handshake. */
  watch(socket: TLSSocket, connection: DownstreamConnection): void {
    this.#keyLog?.watch(socket, connection);
  }

  onEnded(handshake: Handshake): void {
    this.#shaking.delete(handshake);
  }

  /** The handshake is done. @returns what the connection knows of it from now on, or why it is refused. */
  judge(socket: TLSSocket): ConnectionTls | string {
    const peer = socket.getPeerX509Certificate() ?? null;
    const verifier = this.#verifier;
    const fault = peer === null || verifier === null ? null : verifier.check(peer, isPeerTrusted(socket));
    if (fault !== null) {
      this.#count(FAULT_STATS[fault]);
      return `the client's certificate is refused: ${fault}`;
    }
    if (peer === null) {
      if (this.#settings.requiresClientCertificate) {
        this.#count(stats.fail_verify_no_cert);
        return 'the client has no certificate';
      }
      this.#count(stats.no_certificate);
    }
    const tls = new ConnectionTls(socket, peer, peer !== null && verifier !== null, this.#ownOf(socket));
    if (this.#settings.requiresServerName && tls.serverName === '') {
      this.#count(stats.connection_error);
      return 'the client names no server';
    }
    this.#countAgreed(tls);
    return tls;
  }

  /** The one there is, or the one that was chosen; parsed once or for each connection. */
  #ownOf(socket: TLSSocket): CertificateFacts | null {
    if (this.#own !== null) return this.#own;
    const chosen = socket.getX509Certificate();
    return chosen === undefined ? null : certificateFacts(chosen);
  }

  onFailed({ code }: NodeJS.ErrnoException): void {
    this.#count(code === NO_CERTIFICATE ? stats.fail_verify_no_cert : stats.connection_error);
  }

  #countAgreed({ cipher, version, isResumed }: ConnectionTls): void {
    this.#count(stats.handshake);
    if (isResumed) this.#count(stats.session_reused);
    const { stats: worker } = this.context;
    worker.dynamicCounter(this.#statScope, `ciphers.${cipher}`).add();
    worker.dynamicCounter(this.#statScope, `versions.${version}`).add();
  }

  /** What a client gets that asks; only those are refused what has to be stapled. */
  #stapling(
    certificates: ReadonlyMap<string, TlsCertificateSettings>,
    { stapling }: DownstreamTlsSettings,
  ): (der: Buffer) => Uint8Array | null {
    return (der) => {
      this.#count(stats.ocsp_staple_requests);
      const certificate = certificates.get(derText(der));
      const { staple = null, mustBeStapled = false } = certificate ?? {};
      const isValid = staple !== null && (staple.expiresMs ?? Infinity) > this.context.clock.wallMs();
      if (isValid) {
        this.#count(stats.ocsp_staple_responses);
        return staple.response;
      }
      if (stapling === 'must' || mustBeStapled || (stapling === 'strict' && staple !== null)) {
        this.#count(stats.ocsp_staple_failed);
        throw new Error('the OCSP response of the certificate has expired');
      }
      this.#count(stats.ocsp_staple_omitted);
      return null;
    };
  }

  #count(stat: number): void {
    this.context.stats.values[this.#statBase + stat]! += 1;
  }
}

// The states of the drawing above.
const SHAKING = 0;
const SECURED = 1;
const CLOSED = 2;

class Handshake implements Arrival {
  readonly #acceptor: TlsAcceptor;
  readonly #connection: DownstreamConnection;
  readonly #raw: Socket;
  readonly #socket: TLSSocket;
  readonly #timer: ArrivalTimer;
  #state: number = SHAKING;
  #error: Error | null = null;

  constructor(acceptor: TlsAcceptor, connection: DownstreamConnection, options: TLSSocketOptions) {
    const { context, timeoutMs } = acceptor;
    this.#acceptor = acceptor;
    this.#connection = connection;
    this.#raw = connection.socket;
    releaseAccepted(this.#raw);
    const socket = secureServerSocket(this.#raw, options);
    this.#socket = socket;
    layOver(socket, this.#raw);
    acceptor.watch(socket, connection);
    this.#timer = new ArrivalTimer(this, context.wheel, context.clock.monotonicMs(), timeoutMs);
    socket.once('secure', () => this.#onSecure());
    socket.on('error', this.#onError);
    socket.once('end', this.#onEnd);
    socket.once('close', this.#onClose);
    connection.secureWith(socket);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  endIfSilent(): void {
    this.#timer.endIfSilent(this.#connection.startMs);
  }

  get isSilent(): boolean {
    return this.#raw.bytesRead === 0;
  }

  onSilence(): void {
    this.destroy();
  }

  onTooLate(): void {
    this.#acceptor.owner.onHandshakeTimeout();
    this.#connection.transportFailure = 'the handshake took too long';
    this.destroy();
  }

  #onSecure(): void {
    if (this.#state !== SHAKING) return;
    const { context, owner } = this.#acceptor;
    try {
      const tls = this.#acceptor.judge(this.#socket);
      if (typeof tls === 'string') {
        this.#refuse(tls);
        return;
      }
      this.#end(SECURED);
      this.#socket.removeListener('error', this.#onError);
      this.#socket.removeListener('end', this.#onEnd);
      this.#socket.removeListener('close', this.#onClose);
      this.#connection.tls = tls;
      owner.onSecured(this.#connection);
    } catch (error) {
      context.logFault('a TLS handshake', error);
      this.#socket.destroy();
    }
  }

  #refuse(reason: string): void {
    this.#connection.transportFailure = reason;
    this.#log(reason);
    this.#socket.destroy();
  }

  readonly #onError = (error: Error): void => {
    this.#error ??= error;
  };

  /** Half a handshake is none. */
  readonly #onEnd = (): void => {
    this.#socket.destroy(new Error(PEER_LEFT));
  };

  readonly #onClose = (): void => {
    if (this.#state !== SHAKING) return;
    this.#end(CLOSED);
    const error = this.#error as NodeJS.ErrnoException | null;
    if (error !== null) {
      // Whoever has sent nothing, such as a probe of a port, has not failed at TLS.
      if (isOpensslError(error) || this.#raw.bytesRead > 0) this.#acceptor.onFailed(error);
      this.#connection.transportFailure = tlsFailureText(error);
      this.#log(this.#connection.transportFailure);
    }
    this.#acceptor.owner.onUnsecured(this.#connection);
    this.#connection.closed();
  };

  #end(state: number): void {
    this.#state = state;
    this.#timer.remove();
    this.#acceptor.onEnded(this);
  }

  #log(reason: string): void {
    const log = this.#acceptor.context.logs.connection.ofFile(FILE);
    if (log.enabled('debug')) log.debug(`TLS of a connection from ${this.#connection.remoteAddress}: ${reason}`);
  }
}
