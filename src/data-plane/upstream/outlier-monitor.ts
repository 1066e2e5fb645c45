// What one worker notes of one host for the outlier detector: each answer, each connection. Rows of failures are counted over
// all workers; who makes a row as long as it may be tells main. Hot: answers pass here, and cost a few writes.

import type { RuntimeDerived } from '../../base/runtime.ts';
import { OUTLIER_DETECTION, OUTLIER_KEYS } from '../../base/runtime-values.ts';
import type { ConsecutiveKind, OutlierSettings } from '../../snapshot/index.ts';
import { OUTLIER_HOST_STATS } from '../../stats/index.ts';
import { FailureRow } from '../../wasm/shared-records.ts';
import type { WorkerContext } from '../worker-context.ts';

const { external_success, external_total, local_success, local_total } = OUTLIER_HOST_STATS.index;

const OK = 200;
const SERVER_ERRORS = 500;
const SERVER_ERRORS_END = 600;
const BAD_GATEWAY = 502;
const UNAVAILABLE = 503;
const GATEWAY_TIMEOUT = 504;

/** What the hosts of one cluster have in common. */
export class OutlierRules {
  readonly splitsLocalOrigin: boolean;
  readonly #limits: RuntimeDerived<OutlierSettings>;

  constructor(context: WorkerContext, settings: OutlierSettings) {
    this.splitsLocalOrigin = settings.splitsLocalOrigin;
    this.#limits = context.runtime.derived((values) => values.overriding(OUTLIER_DETECTION, OUTLIER_KEYS, settings));
  }

  get limits(): OutlierSettings {
    return this.#limits.value;
  }
}

export class OutlierMonitor {
  readonly #context: WorkerContext;
  readonly #rules: OutlierRules;
  readonly #clusterName: string;
  /** Address of the host's record. */
  readonly #record: number;
  /** First cell of OUTLIER_HOST_STATS in this worker's slab. */
  readonly #statBase: number;

  constructor(context: WorkerContext, rules: OutlierRules, clusterName: string, record: number, statBlock: number) {
    this.#context = context;
    this.#rules = rules;
    this.#clusterName = clusterName;
    this.#record = record;
    this.#statBase = context.stats.base(statBlock);
  }

  /** The host has answered a request. Hot. */
  answered(status: number): void {
    const { records } = this.#context;
    const record = this.#record;
    this.#count(external_total);
    if (status < SERVER_ERRORS || status >= SERVER_ERRORS_END) {
      this.#count(external_success);
      records.endFailures(record, FailureRow.serverErrors);
      records.endFailures(record, FailureRow.gatewayFailures);
      return;
    }
    const { limits } = this.#rules;
    if (status < BAD_GATEWAY || status > GATEWAY_TIMEOUT) records.endFailures(record, FailureRow.gatewayFailures);
    else this.#fail(FailureRow.gatewayFailures, limits.consecutiveGatewayFailure, 'consecutive-gateway-failure');
    this.#fail(FailureRow.serverErrors, limits.consecutive5xx, 'consecutive-5xx');
  }

  /** There is a connection for a request, whose answer will tell more. Hot. */
  connected(): void {
    if (!this.#rules.splitsLocalOrigin) return;
    this.#count(local_total);
    this.#count(local_success);
    this.#context.records.endFailures(this.#record, FailureRow.localFailures);
  }

  /** The connection that `connected` told of is all that will be known: nothing on it can be judged. */
  served(): void {
    if (!this.#rules.splitsLocalOrigin) this.answered(OK);
  }

  /** There was no connection, or it ended under a request. */
  failed(): void {
    this.#failedAs(UNAVAILABLE);
  }

  /** There was no connection, or no answer, in time. */
  timedOut(): void {
    this.#failedAs(GATEWAY_TIMEOUT);
  }

  #failedAs(status: number): void {
    if (!this.#rules.splitsLocalOrigin) {
      this.answered(status);
      return;
    }
    this.#count(local_total);
    const { consecutiveLocalOriginFailure } = this.#rules.limits;
    this.#fail(FailureRow.localFailures, consecutiveLocalOriginFailure, 'consecutive-local-origin-failure');
  }

  #fail(row: FailureRow, limit: number, kind: ConsecutiveKind): void {
    // Equal once per row, so that main is told once.
    if (this.#context.records.addFailure(this.#record, row) === limit) {
      this.#context.reportOutlier(this.#clusterName, this.#record, kind);
    }
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#statBase + stat]! += 1;
  }
}
