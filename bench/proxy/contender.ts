// The proxies that are compared, and how each is started: one process, one worker, pinned to the proxy's core. All do
// the same work on heads: forwarding headers, an identifier and `via` on the request; `server`, `via` and a service
// time on the response. All keep connections alive on both sides, and none writes an access log.

import type { PinnedProcess } from './pinned-process.ts';

/** What a proxy is asked to be in front of. */
export type Protocol = 'http' | 'tcp';

export interface ProxyTask {
  readonly protocol: Protocol;
  /** Where to listen, on 127.0.0.1. */
  readonly port: number;
  readonly upstreamPort: number;
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
