// Those of equivalents.ts that lie in src/data-plane/router.

import type { EquivalentMutants } from './equivalents.ts';

export const ROUTER_EQUIVALENTS: readonly EquivalentMutants[] = [
  {
    file: 'src/data-plane/router/back-off.ts',
    line: 'if (text === undefined || !SECONDS.test(text)) continue;',
    changes: ['text === undefined → false'],
    why: 'What is not there is no number either.',
  },
  {
    file: 'src/data-plane/router/grpc-timeout.ts',
    line: "return GRPC.test(head.header(CONTENT_TYPE) ?? '');",
    changes: ['\'\' → "Stryker was here!"'],
    why: 'Neither is the type of gRPC.',
  },
  {
    file: 'src/data-plane/router/grpc-timeout.ts',
    line: 'const match = text === undefined ? null : TIMEOUT.exec(text);',
    changes: ['text === undefined → false'],
    why: 'What is not there is no time either.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: '#followsTimeout = false;',
    changes: ['false → true'],
    why: 'Each wait for a retry says it anew.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: '#isRequestDone = false;',
    changes: ['false → true'],
    why: '`start` says it before anybody asks.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: 'if (!each.isHedged && (isRetry || wantsAnother(terms, response))) {',
    changes: ['isRetry || wantsAnother(terms, response) → true'],
    why: '`onResponse` asks the same; this spares most requests the decisions and their object.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: "const decision = this.#decide(each, 'timeout');",
    changes: ['\'timeout\' → ""'],
    why: 'Retries tell apart overflows, failed connections and the rest, which both belong to.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: 'if (end === start || (this.#terms === null && this.#companions === 0)) return;',
    changes: ['end === start → false'],
    why: 'Spares requests without a body the buffer that would keep nothing.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: 'if (this.#terms === null) this.#replay = null;',
    changes: ['this.#terms === null → false'],
    why: 'Gives memory back that nobody reads any more.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: "case 'first':",
    changes: ['\'first\' → ""'],
    why: 'No selection of hosts either way.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: 'if (this.#running.length === 0) return;',
    changes: ['this.#running.length === 0 → false'],
    why: 'Spares requests with one try a list.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: 'other.attempt.cancel(true);',
    changes: ['true → false'],
    why: 'Tells how a tunnel ends; what has no answer yet is none.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: 'if (index === -1) return false;',
    changes: ['index === -1 → false', 'false → true'],
    why: 'A try leaves once. Were it to leave twice, it must not take another with it.',
  },
  {
    file: 'src/data-plane/router/request-tries.ts',
    line: 'if (index === this.#running.length - 1) this.#running.pop();',
    changes: ['index === this.#running.length - 1 → false', 'this.#running.length - 1 → this.#running.length + 1'],
    why: 'The other way takes the last one out as well, and makes a list for it.',
  },
  {
    file: 'src/data-plane/router/retry-terms.ts',
    line: 'maxRetries: maxRetries !== undefined && COUNT.test(maxRetries) ? Number(maxRetries) : base.maxRetries,',
    changes: ['maxRetries !== undefined → true'],
    why: 'What is not there is no number either.',
  },
  {
    file: 'src/data-plane/router/shadow.ts',
    line: 'readonly awaitsTunnel = false;',
    changes: ['false → true'],
    why: 'Asked of requests that have not come in full, which copies have.',
  },
  {
    file: 'src/data-plane/router/strict-checks.ts',
    line: "'x-proxy-retry-grpc-on': (value) => namesConditions(value, 'grpc'),",
    changes: ['\'grpc\' → ""'],
    why: 'What is not HTTP is gRPC.',
  },
  {
    file: 'src/data-plane/router/tcp-request.ts',
    line: "if (host === null) this.onNoHost('none');",
    changes: ['\'none\' → ""'],
    why: 'What is no overflow is none.',
  },
  {
    file: 'src/data-plane/router/tcp-request.ts',
    line: 'const isTaken = start === end || upstream.write(start === 0 ? bytes : bytes.subarray(start), end - start);',
    changes: ['start === 0 → false'],
    why: 'Spares most pieces a view of themselves.',
  },
  {
    file: 'src/data-plane/router/timed-try.ts',
    line: "#head = '';",
    changes: ['\'\' → "Stryker was here!"'],
    why: 'A try is asked for it when it has an answer, and a connection before that.',
  },
  {
    file: 'src/data-plane/router/tried-hosts.ts',
    line: 'if (this.#frequency === 0) return;',
    changes: ['this.#frequency === 0 → false'],
    why: 'No number can be divided by 0 without a rest; spares the list of priorities.',
  },
  {
    file: 'src/data-plane/router/tried-hosts.ts',
    line: 'if (value === undefined) return false;',
    changes: ['value === undefined → false'],
    why: 'What is not there is the same as nothing that a policy can name.',
  },
  {
    file: 'src/data-plane/router/upstream-attempt.ts',
    line: '#isRequestDone = false;',
    changes: ['false → true'],
    why: '`start` says it before anybody asks.',
  },
  {
    file: 'src/data-plane/router/upstream-attempt.ts',
    line: '#hasSentBody = false;',
    changes: ['false → true'],
    why: 'Said when there is a connection, before anybody asks.',
  },
  {
    file: 'src/data-plane/router/upstream-attempt.ts',
    line: '#isCanary = false;',
    changes: ['false → true'],
    why: 'The head of the response says it before anybody asks.',
  },
  {
    file: 'src/data-plane/router/upstream-attempt.ts',
    line: "const hostname = methodId === Method.CONNECT ? '' : this.#host!.hostname;",
    changes: ['\'\' → "Stryker was here!"'],
    why: 'No name of a host: the Host line is left as it is either way.',
  },
  {
    file: 'src/data-plane/router/upstream-attempt.ts',
    line: 'return true;',
    changes: ['true → false'],
    why: 'Behind a response that nobody gets: its connection is back in the pool or closed, and asks no more.',
  },
  {
    file: 'src/data-plane/router/upstream-attempt.ts',
    line: "if (host === null) this.onNoHost('none');",
    changes: ['\'none\' → ""'],
    why: 'What is no overflow is none.',
  },
];
