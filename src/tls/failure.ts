// Why TLS of a connection has failed, as logs and answers tell it.

/** How peers are refused whose handshake went well. */
const REFUSED = 'WEIR_TLS_PEER_REFUSED';
/** Secrets that TLS cannot do without have not come. */
const NOT_READY = 'WEIR_TLS_NOT_READY';
/** As others say it. */
export const NOT_READY_TEXT = 'TLS_error:_Secret_is_not_supplied_by_SDS';
const OPENSSL_CODE = /^ERR_SSL_/;

export type TlsError = NodeJS.ErrnoException & { readonly reason?: string };

/** OpenSSL has found fault with what the peer said, or the peer with what was said to it. */
export function isOpensslError({ code = '' }: NodeJS.ErrnoException): boolean {
  return OPENSSL_CODE.test(code);
}

/** OpenSSL's reason without its numbers and source lines. */
export function tlsFailureText(error: TlsError): string {
  if (error.code === NOT_READY) return NOT_READY_TEXT;
  return `TLS_error:|${error.reason ?? error.code ?? error.message}:TLS_error_end`;
}

/** @param reason what is wrong with the peer's certificate. */
export function peerRefusal(reason: string): TlsError {
  return Object.assign(new Error(reason), { code: REFUSED, reason });
}

/** @param names of secrets that have not come. */
export function notReadyFault(names: readonly string[]): TlsError {
  return Object.assign(new Error(notReadyText(names)), { code: NOT_READY });
}

export function notReadyText(names: readonly string[]): string {
  return `${names.length === 1 ? 'secret' : 'secrets'} ${names.join(', ')} not supplied by SDS`;
}

/** @returns an empty text for what is no failure of TLS. */
export function tlsFailureOf(error: TlsError | null): string {
  if (error === null || !(isOpensslError(error) || error.code === REFUSED || error.code === NOT_READY)) return '';
  return tlsFailureText(error);
}
