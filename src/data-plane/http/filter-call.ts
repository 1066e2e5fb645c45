// What a filter and the call that it makes to a cluster know of each other; upstream-call.ts makes it.

import type { RetryPolicy } from '../route/retry-policy.ts';
import type { UpstreamFailure } from '../upstream/pool/failure.ts';
import type { TextHead } from './text-head.ts';
import type { Trailers } from './trailers.ts';

export interface CallRequest {
  /** By name. */
  readonly cluster: string;
  readonly method: string;
  /** As it stands in the request line. */
  readonly path: string;
  readonly host: string;
  /** Without those that say how long the body is. A value that cannot stand in a line is left out. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** Given away. */
  readonly body: Buffer;
  readonly isGrpc: boolean;
  /** 0 for that of calls which have none. */
  readonly timeoutMs: number;
  /** A longer body of an answer is a failure. */
  readonly maxAnswerBytes: number;
  /** What it is tried again for; absent for nothing. */
  readonly retry?: RetryPolicy | undefined;
}

export interface CallAnswer {
  readonly status: number;
  /** The caller's own. */
  readonly head: TextHead;
  readonly body: Buffer;
  readonly trailers: Trailers | null;
}

export type CallFailure =
  | UpstreamFailure
  | 'no healthy upstream'
  | 'DNS resolution failure'
  | 'timeout'
  | 'unknown cluster'
  | 'answer too large'
  | 'answer unreadable';

/** One of these is called, once, perhaps before the call has been made. */
export interface CallReceiver {
  onAnswer(answer: CallAnswer): void;
  onCallFailure(failure: CallFailure): void;
}
