// How connections to a host begin, before anything of the protocol that is spoken over them.

import type { UpstreamTls } from './tls/upstream-tls.ts';

export interface Opening {
  /** Sent first, before TLS; nobody changes it. Null for nothing. */
  readonly preamble: Buffer | null;
  /** Null: what follows is plain. */
  readonly tls: UpstreamTls | null;
  /** What servers are asked for by TLS, and what their certificates have to be for, where requests say it; else empty. */
  readonly sentName: string;
  readonly verifiedName: string;
  /** The configured DNS name of the host, or empty. */
  readonly hostname: string;
}

/** Protocols that are offered in a handshake (ALPN). */
export interface AlpnWish {
  readonly protocols: readonly string[];
  /** Also of what the configuration offers; otherwise where that offers none. */
  readonly takesPlace: boolean;
  /** A server that chooses one of these is refused: what it would speak is not what will be said. */
  readonly refused?: readonly string[];
}

export const NO_ALPN: AlpnWish = { protocols: [], takesPlace: false };
export const HTTP1_ALPN: AlpnWish = { protocols: ['http/1.1'], takesPlace: false, refused: ['h2'] };
export const HTTP2_ALPN: AlpnWish = { protocols: ['h2'], takesPlace: false, refused: ['http/1.1', 'http/1.0'] };
/** The server decides. */
export const EITHER_ALPN: AlpnWish = { protocols: ['h2', 'http/1.1'], takesPlace: false };
