// Secures the connections of one filter chain before its terminal filter gets them, which then reads and writes a TLS socket
// as it would any other. Knows what all of them have in common; each is a Handshake.

import { X509Certificate } from 'node:crypto';
import type { SecureContext, TLSSocket, TLSSocketOptions } from 'node:tls';
import type { DownstreamTlsSettings, DownstreamTlsSnapshot, TlsCertificateSettings } from '../../../snapshot/index.ts';
import { SSL_SOCKET_FACTORY_STATS, TLS_STATS } from '../../../stats/index.ts';
import { type PeerFault, PeerVerifier } from '../../../tls/peer-verifier.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import { type CertificateFacts, ConnectionTls, certificateFacts } from '../../network/tls/connection-tls.ts';
import { contextFor, derText, ServerContexts } from '../../network/tls/server-contexts.ts';
import { isPeerTrusted, OcspStapler, serverSocketOptions } from '../../network/tls/tls-sockets.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { ClientKeyTypes } from './client-key-types.ts';
import { Handshake, type HandshakeOwner } from './handshake.ts';
import { KeyLog } from './key-log.ts';

const stats = TLS_STATS.index;

const FAULT_STATS: Readonly<Record<NonNullable<PeerFault>, number>> = {
  untrusted: stats.fail_verify_error,
  hash: stats.fail_verify_cert_hash,
  name: stats.fail_verify_san,
};
const NO_CERTIFICATE = 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE';

/** Whoever gets connections that are secured. */
export interface SecuredOwner {
  onSecured(connection: DownstreamConnection): void;
  /** It will never be, and is about to be told of as closed. */
  onUnsecured(connection: DownstreamConnection): void;
  onHandshakeTimeout(): void;
}

export class TlsAcceptor implements HandshakeOwner {
  readonly context: WorkerContext;
  readonly timeoutMs: number;
  readonly #owner: SecuredOwner;
  readonly #statScope: string;
  readonly #statBase: number;
  readonly #factoryBase: number;
  readonly #shaking = new Set<Handshake>();
  #settings: DownstreamTlsSettings;
  #verifier: PeerVerifier | null = null;
  #options!: TLSSocketOptions;
  /** For clients whose key type is known beforehand; null where that is nobody's concern. */
  #byKeyType: { readonly types: ClientKeyTypes; readonly options: ReadonlyMap<string, TLSSocketOptions> } | null = null;
  #keyLog: KeyLog | null = null;
  /** Null where there are several certificates. */
  #own: CertificateFacts | null = null;

  /** @param timeoutMs 0 for no limit. */
  constructor(context: WorkerContext, snapshot: DownstreamTlsSnapshot, timeoutMs: number, owner: SecuredOwner) {
    this.context = context;
    this.#owner = owner;
    this.timeoutMs = timeoutMs;
    this.#statScope = snapshot.statScope;
    context.stats.openScope(this.#statScope);
    this.#statBase = context.stats.base(snapshot.statBlock);
    this.#factoryBase = context.stats.base(snapshot.factoryBlock);
    this.#settings = snapshot.settings;
    this.update(snapshot);
  }

  /** Of handshakes from now on. */
  optionsFor(bytes: Buffer): TLSSocketOptions {
    if (this.#byKeyType === null) return this.#options;
    const { types, options } = this.#byKeyType;
    return options.get(types.of(bytes) ?? '') ?? this.#options;
  }

  get connectionCount(): number {
    return this.#shaking.size;
  }

  /** False while secrets are missing that no handshake goes without. */
  get isReady(): boolean {
    return this.#settings.missingSecrets.length === 0;
  }

  /** For handshakes from now on. */
  update({ settings, ticketKeys }: Pick<DownstreamTlsSnapshot, 'settings' | 'ticketKeys'>): void {
    this.#settings = settings;
    if (!this.isReady) return;
    const contexts = new ServerContexts(settings, ticketKeys);
    const { validation, requiresClientCertificate, alpnProtocols } = settings;
    this.#verifier = validation && new PeerVerifier(validation);
    this.#own =
      settings.certificates.length === 1 ? certificateFacts(new X509Certificate(settings.certificates[0]!.leaf)) : null;
    const { stapled, stapledAlone, keyTypes } = contexts;
    const optionsOf = (
      keyType: string | null,
      staples: ReadonlyMap<string, TlsCertificateSettings> | null,
    ): TLSSocketOptions => {
      const secureContext = contextFor(contexts.first, keyType);
      const find = (name: string): SecureContext | undefined => {
        const choice = contexts.find(name);
        return choice && contextFor(choice, keyType);
      };
      return serverSocketOptions({
        secureContext,
        alpnProtocols,
        requestsCertificate: validation !== null || requiresClientCertificate,
        requiresCertificate: requiresClientCertificate,
        findContext: contexts.isSimple ? null : find,
        stapler: staples && new OcspStapler(secureContext, this.#stapling(staples, settings)),
      });
    };
    this.#options = optionsOf(null, stapledAlone);
    this.#byKeyType =
      keyTypes.length === 0
        ? null
        : {
            types: new ClientKeyTypes(settings, contexts),
            options: new Map(keyTypes.map((keyType) => [keyType, optionsOf(keyType, stapled)])),
          };
    this.#keyLog = settings.keyLog && new KeyLog(settings.keyLog, this.context.logs.connection);
  }

  accept(connection: DownstreamConnection): void {
    if (!this.isReady) {
      this.context.stats.values[
        this.#factoryBase + SSL_SOCKET_FACTORY_STATS.index.downstream_context_secrets_not_ready
      ]! += 1;
    }
    this.#shaking.add(new Handshake(this, connection));
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

  watch(socket: TLSSocket, connection: DownstreamConnection): void {
    this.#keyLog?.watch(socket, connection);
  }

  onEnded(handshake: Handshake): void {
    this.#shaking.delete(handshake);
  }

  onSecured(connection: DownstreamConnection): void {
    this.#owner.onSecured(connection);
  }

  onUnsecured(connection: DownstreamConnection): void {
    this.#owner.onUnsecured(connection);
  }

  onHandshakeTimeout(): void {
    this.#owner.onHandshakeTimeout();
  }

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

  /** What a client gets that asks; only those are refused what has to be stapled. @param certificates that can be told. */
  #stapling(
    certificates: ReadonlyMap<string, TlsCertificateSettings>,
    { stapling, certificates: own }: DownstreamTlsSettings,
  ): (der: Buffer) => Uint8Array | null {
    return (der) => {
      this.#count(stats.ocsp_staple_requests);
      const certificate = certificates.get(derText(der));
      const staple = certificate?.staple ?? null;
      // Of one that is chosen among several later on, any may be it.
      const mustBeStapled = certificate?.mustBeStapled ?? own.some((each) => each.mustBeStapled);
      const isValid = staple !== null && (staple.expiresMs ?? Infinity) > this.context.clock.wallMs();
      if (isValid) {
        this.#count(stats.ocsp_staple_responses);
        return staple.response;
      }
      if (stapling === 'must' || mustBeStapled || (stapling === 'strict' && staple !== null)) {
        this.#count(stats.ocsp_staple_failed);
        throw new Error('there is no OCSP response for the certificate that holds');
      }
      this.#count(stats.ocsp_staple_omitted);
      return null;
    };
  }

  #count(stat: number): void {
    this.context.stats.values[this.#statBase + stat]! += 1;
  }
}
