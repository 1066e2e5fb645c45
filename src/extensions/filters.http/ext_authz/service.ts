// How a service is asked about a request, and what its answer means: by HTTP or by gRPC.

import type { CallAnswer, CallRequest, FormatFacts } from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import type { Verdict } from './verdict.ts';

/** What is known beside the request's head. */
export interface Question {
  /** Null where the service is not told it. */
  readonly body: Buffer | null;
  /** There is more of the body. */
  readonly isPartial: boolean;
  /** The body goes as bytes. */
  readonly isRaw: boolean;
  readonly facts: FormatFacts;
  /** What the levels of the route say, the nearest one first. */
  readonly contexts: readonly Readonly<Record<string, string>>[];
  readonly maxAnswerBytes: number;
}

export interface Service {
  ask(head: RequestHead, question: Question): CallRequest;
  judge(answer: CallAnswer): Verdict;
}
