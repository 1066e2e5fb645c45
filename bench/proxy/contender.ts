// The proxies that are compared, and how each is started: one process, one worker, pinned to the proxy's core. All do
// the same work on heads: forwarding headers, an identifier and `via` on the request; `server`, `via` and a service
// time on the response. All keep connections alive on both sides, and none writes an access log.

import type { PinnedProcess } from './pinned-process.ts';

/** What a proxy is asked to be in front of: what clients speak, and what the upstream. */
export type Protocol =
  | 'tcp'
  | 'http'
  | 'https'
  | 'http2'
  | 'http2-tls'
  | 'http-to-http2'
  | 'http-to-https'
  | 'http2-to-http2';

/** What the upstream speaks: each has a port of its own there. */
export type UpstreamSide = 'http' | 'http2' | 'https';

export interface ProtocolTraits {
  readonly clientsSpeakHttp2: boolean;
  readonly upstream: UpstreamSide;
  /** Of clients. */
  readonly isTls: boolean;
}

const PLAIN: ProtocolTraits = { clientsSpeakHttp2: false, upstream: 'http', isTls: false };

/** Without TLS HTTP/2 is spoken with prior knowledge. */
export const TRAITS: Readonly<Record<Protocol, ProtocolTraits>> = {
  tcp: PLAIN,
  http: PLAIN,
  https: { ...PLAIN, isTls: true },
  http2: { ...PLAIN, clientsSpeakHttp2: true },
  'http2-tls': { ...PLAIN, clientsSpeakHttp2: true, isTls: true },
  'http-to-http2': { ...PLAIN, upstream: 'http2' },
  'http-to-https': { ...PLAIN, upstream: 'https' },
  'http2-to-http2': { ...PLAIN, clientsSpeakHttp2: true, upstream: 'http2' },
};

/** Files in PEM. */
export interface CertificateFiles {
  readonly certificate: string;
  readonly key: string;
  /** Both, one behind the other. */
  readonly both: string;
}

export interface ProxyTask {
  readonly protocol: Protocol;
  /** Where to listen, on 127.0.0.1. */
  readonly port: number;
  /** Of the upstream's side that speaks what the protocol says. */
  readonly upstreamPort: number;
  /** Null where nothing is secured. */
  readonly certificate: CertificateFiles | null;
  /** Processor cores to run on, as taskset takes them: `0` or `0,1`. */
  readonly cores: string;
  /** Workers, threads or processes that carry traffic. */
  readonly workers: number;
  /** A folder of this contender's own for its files. */
  readonly folder: string;
}

export interface Contender {
  readonly name: string;
  /** Its version, or undefined when it is not installed. */
  version(): string | undefined;
  /** Why it is missing, for the message that says so. */
  readonly absence: string;
  start(task: ProxyTask): Promise<PinnedProcess>;
}

/** Headers that every contender adds, so that none saves the work. */
export const SAME_WORK = {
  via: 'bench',
  /** Tells the upstream how long the answer may take, as weir does for every route with a timeout. */
  expectedTimeoutMs: 15_000,
} as const;
