// What the answer to a check by HTTP says of its host, whatever the protocol that it came by.

import { compileByteMatch, type StringTest } from '../../../base/string-match.ts';
import type { HttpProbeSettings, StatusRange } from '../../../snapshot/index.ts';
import type { AnswerFacts } from './http-answer.ts';
import type { PayloadMatch } from './payload-match.ts';
import { type ProbeResult, passed, wrong } from './probe.ts';

export class HttpJudge {
  readonly #settings: HttpProbeSettings;
  readonly #verifiesService: () => boolean;
  readonly #isService: StringTest | undefined;

  /** @param verifiesService asked before the name of the service is looked at; counts that it is. */
  constructor(settings: HttpProbeSettings, verifiesService: () => boolean) {
    this.#settings = settings;
    this.#verifiesService = verifiesService;
    this.#isService = settings.serviceName && compileByteMatch(settings.serviceName);
  }

  judge(
    { status, isDegraded, isImmediateFailure: isImmediate, cluster }: AnswerFacts,
    body: PayloadMatch,
  ): ProbeResult {
    const { expectedStatuses, retriableStatuses } = this.#settings;
    if (!isWithin(expectedStatuses, status)) {
      return wrong(`HTTP ${status}`, { isImmediate, isRetriable: isWithin(retriableStatuses, status) });
    }
    if (!body.isMatched) return wrong(`HTTP ${status} without the expected body`, { isImmediate });
    const service = cluster ?? '';
    if (this.#isService !== undefined && this.#verifiesService() && !this.#isService(service)) {
      return wrong(`HTTP ${status} of another service: ${JSON.stringify(service)}`, { isImmediate });
    }
    return passed(`HTTP ${status}`, isDegraded);
  }
}

function isWithin(ranges: readonly StatusRange[], status: number): boolean {
  return ranges.some(({ start, end }) => status >= start && status < end);
}
