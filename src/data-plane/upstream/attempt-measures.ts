// What some clusters want to know of each attempt beside the usual: how much of their time requests have used, and how
// large messages are, as they are on the wire. The others have none of this and pay nothing for it.

import { type ClusterSnapshot, NO_CELLS } from '../../snapshot/index.ts';
import { MESSAGE_SIZE_STATS, TIMEOUT_BUDGET_STATS } from '../../stats/index.ts';
import type { ResponseHead } from '../../wasm/http1.ts';
import type { WorkerContext } from '../worker-context.ts';

const { upstream_rq_timeout_budget_percent_used, upstream_rq_timeout_budget_per_try_percent_used } =
  TIMEOUT_BUDGET_STATS.index;
const {
  upstream_rq_body_size,
  upstream_rq_headers_count,
  upstream_rq_headers_size,
  upstream_rs_body_size,
  upstream_rs_headers_count,
  upstream_rs_headers_size,
} = MESSAGE_SIZE_STATS.index;

const NONE = -1;
const ALL_OF_IT = 100;

export class AttemptMeasures {
  readonly #context: WorkerContext;
  /** First cells in this worker's slab; NONE where nobody wants to know. */
  readonly #budgets: number;
  readonly #sizes: number;

  /** @returns null for a cluster that wants to know nothing. */
  static of(context: WorkerContext, { budgetBlock, sizeBlock }: ClusterSnapshot): AttemptMeasures | null {
    if (budgetBlock === NO_CELLS && sizeBlock === NO_CELLS) return null;
    return new AttemptMeasures(context, budgetBlock, sizeBlock);
  }

  private constructor(context: WorkerContext, budgetBlock: number, sizeBlock: number) {
    this.#context = context;
    this.#budgets = budgetBlock === NO_CELLS ? NONE : context.stats.base(budgetBlock);
    this.#sizes = sizeBlock === NO_CELLS ? NONE : context.stats.base(sizeBlock);
  }

  /** An attempt begins. */
  begin(): AttemptMeter {
    return new AttemptMeter(this, this.#context.clock.monotonicMs());
  }

  /** A request has its answer, or none in its time. @param timeoutMs of it, 0 for any. */
  recordBudget(elapsedMs: number, timeoutMs: number): void {
    this.#recordShare(upstream_rq_timeout_budget_percent_used, elapsedMs, timeoutMs);
  }

  /** An attempt is over. @param perTryTimeoutMs 0 for any. */
  record(meter: AttemptMeter, perTryTimeoutMs: number): void {
    const elapsedMs = this.#context.clock.monotonicMs() - meter.startedMs;
    this.#recordShare(upstream_rq_timeout_budget_per_try_percent_used, elapsedMs, perTryTimeoutMs);
    if (this.#sizes === NONE || meter.requestHeadBytes === 0) return;
    this.#recordSize(upstream_rq_headers_size, meter.requestHeadBytes);
    this.#recordSize(upstream_rq_headers_count, meter.requestFields);
    this.#recordSize(upstream_rq_body_size, meter.requestBodyBytes);
    if (meter.responseHeadBytes === 0) return;
    this.#recordSize(upstream_rs_headers_size, meter.responseHeadBytes);
    this.#recordSize(upstream_rs_headers_count, meter.responseFields);
    this.#recordSize(upstream_rs_body_size, meter.responseBodyBytes);
  }

  #recordShare(stat: number, elapsedMs: number, timeoutMs: number): void {
    if (this.#budgets === NONE) return;
    const percent = timeoutMs === 0 ? 0 : Math.min(ALL_OF_IT, Math.floor((elapsedMs * ALL_OF_IT) / timeoutMs));
    this.#context.stats.record(this.#budgets + stat, percent);
  }

  #recordSize(stat: number, value: number): void {
    this.#context.stats.record(this.#sizes + stat, value);
  }
}

/** One attempt, as far as it has come. */
export class AttemptMeter {
  readonly startedMs: number;
  /** 0 before the request has been sent. */
  requestHeadBytes = 0;
  requestFields = 0;
  requestBodyBytes = 0;
  /** 0 before there is a response. */
  responseHeadBytes = 0;
  responseFields = 0;
  responseBodyBytes = 0;
  readonly #measures: AttemptMeasures;

  constructor(measures: AttemptMeasures, startedMs: number) {
    this.#measures = measures;
    this.startedMs = startedMs;
  }

  /** @param bodyBytes that go out with it. */
  sendHead(head: string, bodyBytes: number): void {
    this.requestHeadBytes = head.length;
    this.requestFields = fieldsOf(head);
    this.requestBodyBytes = bodyBytes;
  }

  receiveHead({ headLength, fieldCount }: ResponseHead): void {
    this.responseHeadBytes = headLength;
    this.responseFields = fieldCount;
  }

  end(perTryTimeoutMs: number): void {
    this.#measures.record(this, perTryTimeoutMs);
  }
}

/** Lines between the first and the empty one. */
function fieldsOf(head: string): number {
  let lines = 0;
  for (let at = head.indexOf('\n'); at !== -1; at = head.indexOf('\n', at + 1)) lines++;
  return lines - 2;
}
