// Why TLS of a connection has failed, as logs and answers tell it.

/** How peers are refused whose handshake went well. */
const REFUSED = 'WEIR_TLS_PEER_REFUSED';
const OPENSSL_CODE = /^ERR_SSL_/;

export type TlsError = NodeJS.ErrnoException & { readonly reason?: string };

/** OpenSSL has found fault with what the peer said, or the peer with what was said to it. */
export function isOpensslError({ code = '' }: NodeJS.ErrnoException): boolean {
  return OPENSSL_CODE.test(code);
}

/** OpenSSL's reason without its numbers and source lines. */
export function tlsFailureText(error: TlsError): string {
  return `TLS_error:|${error.reason ?? error.code ?? error.message}:TLS_error_end`;
}

/** @param reason what is wrong with the peer's certificate. */
export function peerRefusal(reason: string): TlsError {
  return Object.assign(new Error(reason), { code: REFUSED, reason });
}

/** @returns an empty text for what is no failure of TLS. */
export function tlsFailureOf(error: TlsError | null): string {
  if (error === null || !(isOpensslError(error) || error.code === REFUSED)) return '';
  return tlsFailureText(error);
}
