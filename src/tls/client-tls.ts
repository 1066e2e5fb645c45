// TLS to a server, as one context of the configuration wants it: handshakes begin here, and what they have come to is judged.
// Knows nothing of the thread that it runs in.
//
// Node checks a chain while the handshake runs and says afterwards what it thinks; names and hashes are held against the
// certificate then, before anything is sent. A session that is resumed brings no certificate: that of the handshake
// which it comes from is kept beside it, and judged again.

import { constants, type X509Certificate } from 'node:crypto';
import { isIP, type Socket } from 'node:net';
import { connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import type { UpstreamTlsSettings } from '../snapshot/index.ts';
import { type PeerFault, PeerVerifier } from './peer-verifier.ts';
import { secureContextOptions } from './secure-context.ts';

/** Whom a connection is meant for. */
export interface TlsTarget {
  /** Its address: sessions are resumed with the server that has given them. */
  readonly label: string;
  /** What the server is asked for in place of the settings' name; empty for that. */
  readonly sentName: string;
  /** What its certificate has to be for, in place of the settings' names; empty for those. */
  readonly verifiedName: string;
  /** The configured DNS name of the host, or empty. */
  readonly hostname: string;
  readonly alpnProtocols: readonly string[];
}

export interface JudgedPeer {
  readonly certificate: X509Certificate | null;
  readonly fault: PeerFault;
  /** OpenSSL's word for what is wrong with the chain; empty for nothing. */
  readonly reason: string;
}

interface KeptSession {
  readonly key: string;
  readonly session: Buffer;
  readonly peer: X509Certificate | null;
}

/** Of all servers together. */
const MAX_SESSIONS = 1000;

export class ClientTls {
  readonly settings: UpstreamTlsSettings;
  readonly #verifier: PeerVerifier | null;
  /** Newest last. */
  #sessions: KeptSession[] = [];
  /** Made with the first connection: most clusters of a large configuration see none. */
  #context: SecureContext | undefined;
  readonly #resumed = new WeakMap<TLSSocket, KeptSession>();

  constructor(settings: UpstreamTlsSettings) {
    this.settings = settings;
    this.#verifier = settings.validation && new PeerVerifier(settings.validation);
  }

  get verifiesPeer(): boolean {
    return this.#verifier !== null;
  }

  /**
   * Begins a handshake over a connected socket. `secureConnect` follows, after which `judge` has the last word; or `close`.
   * @throws where a context cannot be made of the settings, which have been tried when the configuration was loaded.
   */
  begin(raw: Socket, target: TlsTarget): TLSSocket {
    const serverName = this.#serverName(target);
    const { alpnProtocols } = target;
    const kept = this.#take(keyOf(target, serverName));
    this.#context ??= this.#createContext();
    const options = {
      socket: raw,
      secureContext: this.#context,
      rejectUnauthorized: false,
      // Names are judged afterwards.
      checkServerIdentity: () => undefined,
      ...(serverName === '' ? {} : { servername: serverName }),
      ...(alpnProtocols.length === 0 ? {} : { ALPNProtocols: [...alpnProtocols] }),
      ...(kept === undefined ? {} : { session: kept.session }),
      // As every other socket has it (socket-events.ts); Node's types leave it out.
      highWaterMark: 1,
      allowHalfOpen: true,
    };
    const socket = connect(options);
    if (kept !== undefined) this.#resumed.set(socket, kept);
    if (this.settings.maxSessions > 0) this.#keepSessions(socket, keyOf(target, serverName));
    return socket;
  }

  /** After the handshake. */
  judge(socket: TLSSocket, target: TlsTarget): JudgedPeer {
    const certificate = this.#peerOf(socket);
    const reason = socket.authorized ? '' : String(socket.authorizationError ?? '');
    const verifier = this.#verifier;
    if (verifier === null) return { certificate, fault: null, reason };
    if (certificate === null) return { certificate, fault: 'untrusted', reason: 'no certificate' };
    const { verifiesServerName } = this.settings;
    const name = target.verifiedName || (verifiesServerName ? this.#wantedName(target) : '');
    return { certificate, fault: verifier.check(certificate, socket.authorized, name), reason };
  }

  #peerOf(socket: TLSSocket): X509Certificate | null {
    const shown = socket.getPeerX509Certificate();
    if (shown !== undefined) return shown;
    return socket.isSessionReused() ? (this.#resumed.get(socket)?.peer ?? null) : null;
  }

  #resumedBy(socket: TLSSocket): Buffer | undefined {
    return socket.isSessionReused() ? this.#resumed.get(socket)?.session : undefined;
  }

  #wantedName({ sentName, hostname }: TlsTarget): string {
    const { serverName, usesHostname } = this.settings;
    return sentName || (usesHostname ? hostname : '') || serverName;
  }

  /** An address is no name that a server can be asked for (RFC 6066 section 3). */
  #serverName(target: TlsTarget): string {
    const name = this.#wantedName(target);
    return isIP(name) === 0 ? name : '';
  }

  #createContext(): SecureContext {
    const { settings } = this;
    return createSecureContext({
      ...secureContextOptions(settings),
      ...(settings.allowsRenegotiation ? {} : { secureOptions: constants.SSL_OP_NO_RENEGOTIATION }),
    });
  }

  /** The newest for that server, which is used once (RFC 8446 section C.4); with older protocols it comes back (`#keepSessions`). */
  #take(key: string): KeptSession | undefined {
    const at = this.#sessions.findLastIndex((kept) => kept.key === key);
    return at === -1 ? undefined : this.#sessions.splice(at, 1)[0];
  }

  #keepSessions(socket: TLSSocket, key: string): void {
    let isSecure = false;
    let early: Buffer | undefined;
    const keep = (session: Buffer): void => {
      // Of a peer that was refused nothing is kept.
      if (!socket.destroyed) this.#keep({ key, session, peer: this.#peerOf(socket) });
    };
    socket.on('session', (session) => {
      if (isSecure) keep(session);
      else early = session;
    });
    // Behind whoever judges.
    socket.once('secureConnect', () =>
      queueMicrotask(() => {
        isSecure = true;
        // Of TLS 1.2 and older, a server that goes on with a session gives no other one.
        const known = isTls13(socket) ? undefined : (this.#resumedBy(socket) ?? socket.getSession());
        const session = early ?? known;
        if (session !== undefined) keep(session);
      }),
    );
  }

  #keep(kept: KeptSession): void {
    const own = this.#sessions.filter(({ key }) => key === kept.key);
    const oldest = own.length < this.settings.maxSessions ? undefined : own[0];
    this.#sessions = [...this.#sessions.filter((other) => other !== oldest), kept].slice(-MAX_SESSIONS);
  }
}

function keyOf({ label, verifiedName }: TlsTarget, serverName: string): string {
  return `${label} ${serverName} ${verifiedName}`;
}

function isTls13(socket: TLSSocket): boolean {
  return socket.getProtocol() === 'TLSv1.3';
}
