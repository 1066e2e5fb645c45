// What the head of a retry says otherwise than that of the first attempt: how much time is left, and whether the attempt
// before it ran out of its time. The head is text by then.

import type { Clock } from '../../base/clock.ts';
import type { ProxyHeaders } from '../http/proxy-headers.ts';
import { grpcTimeoutText } from './grpc-timeout.ts';

/** Of the request. */
interface RequestTimes {
  readonly isRequestComplete: boolean;
  readonly requestCompleteMs: number;
}

export interface RetryHeadOptions {
  /** For the whole response, 0 for any time. */
  readonly timeoutMs: number;
  /** What the first head says; 0 for nothing. */
  readonly expectedMs: number;
  /** What it says in the words of gRPC; 0 for nothing. */
  readonly grpcExpectedMs: number;
  /** A header tells whether the attempt before it ran out of time. */
  readonly tellsTimeoutRetry: boolean;
}

export class RetryHead {
  readonly #names: ProxyHeaders;
  readonly #clock: Clock;
  readonly #options: RetryHeadOptions;

  constructor(names: ProxyHeaders, clock: Clock, options: RetryHeadOptions) {
    this.#names = names;
    this.#clock = clock;
    this.#options = options;
  }

  apply(head: string, times: RequestTimes, followsTimeout: boolean): string {
    const timed = this.#withTimeLeft(head, times);
    if (!this.#options.tellsTimeoutRetry) return timed;
    return `${timed.slice(0, -2)}${this.#names.isTimeoutRetry}: ${followsTimeout}\r\n\r\n`;
  }

  #withTimeLeft(head: string, { isRequestComplete, requestCompleteMs }: RequestTimes): string {
    const { timeoutMs, expectedMs, grpcExpectedMs } = this.#options;
    if (timeoutMs === 0 || !isRequestComplete) return head;
    const leftMs = Math.max(1, Math.trunc(timeoutMs - (this.#clock.monotonicMs() - requestCompleteMs)));
    const timed = replaceField(head, this.#names.expectedTimeoutMs, expectedMs, Math.min(leftMs, expectedMs));
    if (grpcExpectedMs === 0) return timed;
    const grpcLeftMs = Math.min(leftMs, grpcExpectedMs);
    return replaceField(timed, 'grpc-timeout', grpcTimeoutText(grpcExpectedMs), grpcTimeoutText(grpcLeftMs));
  }
}

/** Fields of the name with other values are somebody else's. */
function replaceField(head: string, name: string, from: number | string, to: number | string): string {
  return head.replace(`\r\n${name}: ${from}\r\n`, () => `\r\n${name}: ${to}\r\n`);
}
