// How connections are secured: certificates as they have been read, how peers prove who they are, and what a handshake may
// agree on. Workers make secure contexts of it. What it was read from stays beside it, for listings and for files that change later.

import type { StringMatch } from '../base/string-match.ts';
import type { CidrRange } from './cidr-range.ts';
import type { ConfigSourceSettings } from './config-source.ts';

export type TlsVersion = 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';

/** A file, or bytes of the configuration itself. */
export type TlsSource =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'inline'; readonly bytes: Uint8Array };

export interface TlsCertificateSources {
  readonly chain: TlsSource | null;
  readonly key: TlsSource | null;
  readonly password: TlsSource | null;
  /** In place of chain and key. */
  readonly pkcs12: TlsSource | null;
  readonly ocspStaple: TlsSource | null;
}

/** A private key as it was given; it never leaves the process. */
export type TlsIdentity =
  | { readonly kind: 'pem'; readonly chain: string; readonly key: string }
  | { readonly kind: 'pkcs12'; readonly bundle: Uint8Array; readonly password: string };

export interface TlsCertificateSettings {
  readonly sources: TlsCertificateSources;
  readonly identity: TlsIdentity;
  /** The certificate itself, without those that it leads to; PEM. */
  readonly leaf: string;
  /** `rsa`, `ec`, `ed25519`: a connection is offered one of each. */
  readonly keyType: string;
  /** Lower case, perhaps with a first label `*`. */
  readonly serverNames: readonly string[];
  /** Sent to clients that ask; null for none. */
  readonly staple: OcspStaple | null;
  /** It says of itself that it is not to be believed without one. */
  readonly mustBeStapled: boolean;
}

export interface OcspStaple {
  /** DER. */
  readonly response: Uint8Array;
  /** Milliseconds since the Unix epoch. */
  readonly validFromMs: number;
  /** Null where it does not say. */
  readonly expiresMs: number | null;
}

export interface SubjectAltNameMatch {
  readonly type: 'any' | 'dns' | 'uri' | 'email' | 'ip';
  readonly match: StringMatch;
}

export interface TlsValidationSources {
  readonly trustedCa: TlsSource | null;
  readonly crl: TlsSource | null;
}

/** How the certificate of a peer is judged. */
export interface TlsValidationSettings {
  readonly sources: TlsValidationSources;
  /** PEM certificates; null where no chain is verified, `system` for those that the system trusts. */
  readonly trustedCa: string | 'system' | null;
  /** PEM; null for none. */
  readonly crl: string | null;
  /** A chain that leads to none of them is no reason to refuse. */
  readonly acceptsUntrusted: boolean;
  /** SHA-256 of the certificate, lower case hexadecimal; one has to fit, or one of `spkiHashes`, where there are any. */
  readonly certificateHashes: readonly string[];
  /** SHA-256 of the public key's information, base64. */
  readonly spkiHashes: readonly string[];
  /** One has to fit where there are any. */
  readonly subjectAltNames: readonly SubjectAltNameMatch[];
}

export interface TlsKeyLogSettings {
  readonly path: string;
  /** Empty for all. */
  readonly localRanges: readonly CidrRange[];
  readonly remoteRanges: readonly CidrRange[];
}

/** A file that settings were read from; they are read again when it changes. */
export interface TlsFile {
  /** Absolute. */
  readonly path: string;
  /** Whatever is moved into this folder may have changed the file. */
  readonly watchedFolder?: string;
  /** Name of the secret by discovery that it is a part of; absent for a file that the configuration itself names. */
  readonly secret?: string;
}

export type SecretKind = 'tls_certificate' | 'validation_context' | 'session_ticket_keys';

/** A secret that comes by discovery. */
export interface SecretReference {
  readonly name: string;
  readonly source: ConfigSourceSettings;
  /** What it is wanted as. */
  readonly kind: SecretKind;
  /** What it says is added to what the context says itself: it need not be whole. */
  readonly isOverlay: boolean;
}

/** What both sides of a proxy have in common. */
export interface TlsSettings {
  readonly files: readonly TlsFile[];
  /** Those that it is made of, whether they have come or not. */
  readonly secrets: readonly SecretReference[];
  /** Names of those that have not come, and without which no connection can be secured. */
  readonly missingSecrets: readonly string[];
  readonly minVersion: TlsVersion;
  readonly maxVersion: TlsVersion;
  /** For TLS 1.2 and older, as OpenSSL lists them; empty for the usual ones. */
  readonly ciphers: string;
  /** As OpenSSL lists them; empty for its own choice. */
  readonly curves: string;
  readonly signatureAlgorithms: string;
  readonly alpnProtocols: readonly string[];
  readonly certificates: readonly TlsCertificateSettings[];
  /** Null where the peer proves nothing. */
  readonly validation: TlsValidationSettings | null;
  readonly keyLog: TlsKeyLogSettings | null;
}

export interface DownstreamTlsSettings extends TlsSettings {
  readonly requiresClientCertificate: boolean;
  /** A client that names no server is sent away. */
  readonly requiresServerName: boolean;
  /** Of the ciphers that both know the client's favourite is taken. */
  readonly prefersClientCiphers: boolean;
  /**
   * Keys of tickets: new ones get the first, and those of all are taken. A `random` one is of this process alone. Null where
   * nothing is resumed.
   */
  readonly ticketKeys: readonly Uint8Array[] | 'random' | null;
  /** Sessions may be resumed for so long; TLS 1.3 has a limit of its own, 7 days. */
  readonly sessionTimeoutMs: number;
  /** Whether certificates are presented whose OCSP response has expired or, for `must`, is missing. */
  readonly stapling: 'lenient' | 'strict' | 'must';
}

export interface UpstreamTlsSettings extends TlsSettings {
  /** What servers are asked for; empty for nothing. */
  readonly serverName: string;
  /** The DNS name of a host takes the place of `serverName`, where it has one. */
  readonly usesHostname: boolean;
  /** The certificate has to be for the name that the server is asked for. */
  readonly verifiesServerName: boolean;
  /** Kept for each server and name, to resume them; 0 for none. */
  readonly maxSessions: number;
  /** Of TLS 1.2 and older, where servers ask for it. */
  readonly allowsRenegotiation: boolean;
}

export interface DownstreamTlsSnapshot {
  readonly settings: DownstreamTlsSettings;
  /** Name, HMAC key and cipher key of each, 16 bytes, the same for all workers; null for connections that are not resumed. */
  readonly ticketKeys: readonly Uint8Array[] | null;
  /** First cell of TLS_STATS. */
  readonly statBlock: number;
  /** First cell of SSL_SOCKET_FACTORY_STATS. */
  readonly factoryBlock: number;
  /** Prefix of the counters beside it that are named after what has been agreed on, with its final dot. */
  readonly statScope: string;
}

/** How connections of a filter chain are secured from now on. */
export interface SecuredChain {
  /** Of the chain among those of its listener, the default one last. */
  readonly index: number;
  readonly tls: DownstreamTlsSnapshot;
}
