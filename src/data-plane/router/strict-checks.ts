// Control headers of requests from inside that must make sense where the router is told to mind (strict_check_headers);
// elsewhere what makes none is ignored.

import { HEADER_ID, type KnownHeader, type RequestHead } from '../../wasm/http1.ts';
import { invalidControlHeader, type LocalReply } from '../http/local-reply.ts';
import { namesConditions } from './retry-terms.ts';

const NUMBER = /^\d{1,9}$/;

const CHECKS = {
  'x-proxy-upstream-rq-timeout-ms': (value) => NUMBER.test(value),
  'x-proxy-upstream-rq-per-try-timeout-ms': (value) => NUMBER.test(value),
  'x-proxy-max-retries': (value) => NUMBER.test(value),
  'x-proxy-retry-on': (value) => namesConditions(value, 'http'),
  'x-proxy-retry-grpc-on': (value) => namesConditions(value, 'grpc'),
} satisfies Partial<Record<KnownHeader, (value: string) => boolean>>;

interface Check {
  readonly id: number;
  readonly isValid: (value: string) => boolean;
}

export class StrictChecks {
  readonly #checks: readonly Check[];

  /** @param names as `x-proxy-…`. */
  constructor(names: readonly string[]) {
    this.#checks = names.flatMap((name) => {
      if (!Object.hasOwn(CHECKS, name)) return [];
      const known = name as keyof typeof CHECKS;
      return [{ id: HEADER_ID[known], isValid: CHECKS[known] }];
    });
  }

  /** @returns the answer to a request with a header that makes no sense; null when there is none. */
  firstInvalid(head: RequestHead): LocalReply | null {
    for (const { id, isValid } of this.#checks) {
      const value = head.header(id);
      if (value !== undefined && !isValid(value)) {
        return invalidControlHeader(head.nameAt(head.indexOf(id)).toLowerCase(), value);
      }
    }
    return null;
  }
}
