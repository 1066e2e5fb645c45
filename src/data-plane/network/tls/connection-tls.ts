// What is known of the TLS of one connection, once its handshake is done: asked by logs and headers, also when the socket,
// closed, has forgotten it.

import type { X509Certificate } from 'node:crypto';
import { getCiphers, type TLSSocket } from 'node:tls';
import { type AltNames, altNames } from '../../../base/alt-names.ts';
import type { ClientCertificateSettings } from '../../../snapshot/index.ts';
import { areSessionIdsWanted, sessionIdOf } from '../../../tls/session-id.ts';

export interface TlsFacts {
  /** By SNI; empty when the client has named none. */
  readonly serverName: string;
  /** By ALPN; empty when nothing was agreed on. */
  readonly protocol: string;
  /** `TLSv1.3`. */
  readonly version: string;
  /** OpenSSL's name of it. */
  readonly cipher: string;
  readonly isResumed: boolean;
  /** Lower-case hex; empty for none, as with TLS 1.3. */
  readonly sessionId: string;
  readonly peer: CertificateFacts | null;
  readonly own: CertificateFacts | null;
  /** The peer's certificate has been held against authorities, hashes or names. */
  readonly isPeerVerified: boolean;
  /** Monotonic time at which the connection under it was there; negative where nobody has noted it. */
  connectedMs: number;
  /** What requests of the connection say of the peer, by how they are to say it; null before the first that does. */
  forwardedDetails: Map<ClientCertificateSettings, string> | null;
}

export interface CertificateFacts {
  readonly certificate: X509Certificate;
  readonly names: AltNames;
  /** The most telling part first, as RFC 2253 has it. */
  readonly subject: string;
  readonly issuer: string;
}

/** Node makes a text of its own of each connection's version and cipher, and they live as long as it does: these take their place. */
const NAMES: ReadonlyMap<string, string> = new Map(
  ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3', ...getCiphers().map((name) => name.toUpperCase())].map((name) => [
    name,
    name,
  ]),
);

function shared(name: string): string {
  return NAMES.get(name) ?? name;
}

export class ConnectionTls implements TlsFacts {
  forwardedDetails: Map<ClientCertificateSettings, string> | null = null;
  connectedMs = -1;
  readonly serverName: string;
  readonly protocol: string;
  readonly version: string;
  readonly cipher: string;
  readonly isResumed: boolean;
  readonly isPeerVerified: boolean;
  readonly peer: CertificateFacts | null;
  readonly own: CertificateFacts | null;
  readonly #socket: TLSSocket;
  #sessionId: string | null;

  /** @param peer null when it has presented none. @param own the certificate presented to the peer. */
  constructor(
    socket: TLSSocket,
    peer: X509Certificate | null,
    isPeerVerified: boolean,
    own: CertificateFacts | null = null,
  ) {
    const named = (socket as { servername?: string | false | null }).servername;
    this.serverName = typeof named === 'string' ? named : '';
    this.protocol = socket.alpnProtocol || '';
    this.version = shared(socket.getProtocol() ?? '');
    this.cipher = shared(socket.getCipher().name);
    this.isResumed = socket.isSessionReused();
    this.#socket = socket;
    this.#sessionId = areSessionIdsWanted() ? sessionIdOf(socket) : null;
    this.isPeerVerified = isPeerVerified;
    this.peer = peer && certificateFacts(peer);
    this.own = own;
  }

  /** Of a connection that is older than the first format that asks, and has ended, nobody knows it any more. */
  get sessionId(): string {
    this.#sessionId ??= sessionIdOf(this.#socket);
    return this.#sessionId;
  }
}

export function certificateFacts(certificate: X509Certificate): CertificateFacts {
  let names: AltNames | undefined;
  return {
    certificate,
    get subject() {
      return distinguishedName(certificate.subject);
    },
    get issuer() {
      return distinguishedName(certificate.issuer);
    },
    get names() {
      names ??= altNames(certificate);
      return names;
    },
  };
}

/** OpenSSL verifies no longer chain by default than 100; nobody sends one of more than some. */
const MOST_CERTIFICATES = 16;

/**
 * A peer's certificate and those that it has sent with it, from its own on. Without the root, which nobody believes for having
 * been sent, and which Node may have taken out of the authorities of this side where the peer has sent its own alone.
 */
export function chainOf(certificate: X509Certificate): readonly X509Certificate[] {
  const chain = [certificate];
  let next = certificate.issuerCertificate;
  while (next !== undefined && chain.length < MOST_CERTIFICATES && !isRoot(next)) {
    chain.push(next);
    next = next.issuerCertificate;
  }
  return chain;
}

function isRoot({ subject, issuer }: X509Certificate): boolean {
  return subject === issuer;
}

/** Node has one part a line, the least telling first. */
function distinguishedName(lines: string | undefined): string {
  return (lines ?? '').split('\n').reverse().join(',');
}
