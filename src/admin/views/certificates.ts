// The certificates in use, as the admin interface reads them.

export interface CertificateView {
  /** Of its file, or `<inline>`. */
  readonly path: string;
  /** In hexadecimal digits. */
  readonly serialNumber: string;
  readonly dnsNames: readonly string[];
  readonly uris: readonly string[];
  readonly ipAddresses: readonly string[];
  /** Milliseconds since the Unix epoch. */
  readonly validFromMs: number;
  readonly expiresMs: number;
  /** Of the OCSP response that is stapled; null for none. */
  readonly ocsp: { readonly validFromMs: number; readonly expiresMs: number | null } | null;
}

/** Those of one listener or cluster that speaks TLS. */
export interface CertificatesView {
  /** Whom it trusts. */
  readonly authorities: readonly CertificateView[];
  /** Its own, without those that they lead to. */
  readonly chains: readonly CertificateView[];
}
