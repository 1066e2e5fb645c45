// Counters of final responses by class and code, `upstream_rq_2xx` and `upstream_rq_200`, and their times. They come into being
// with the first response of a code, so a cluster keeps them in arrays by code: no name is built per request.

import type { DynamicCounter, DynamicHistogram, WorkerStats } from '../../stats/index.ts';

const CODES = 600;

/** The counters under one prefix within the cluster, such as none or `external.`. */
export class ResponseCodeStats {
  readonly #stats: WorkerStats;
  readonly #scope: string;
  readonly #prefix: string;
  /** They grow with what is answered: of a large configuration most clusters never are. */
  readonly #byCode: DynamicCounter[] = [];
  readonly #byClass: DynamicCounter[] = [];
  #completed: DynamicCounter | null = null;
  #time: DynamicHistogram | null = null;

  /**
   * @param scope with its final dot, for example `cluster.web.`.
   * @param prefix '' or a part with its final dot. The bare `upstream_rq_completed` is in the cluster's table, so
   *   that only prefixed sets count it here; as is the time.
   */
  constructor(stats: WorkerStats, scope: string, prefix: string) {
    this.#stats = stats;
    this.#scope = scope;
    this.#prefix = prefix;
  }

  /** @param code 100 to 599; anything else is counted as completed alone. */
  count(code: number): void {
    if (this.#prefix !== '') {
      this.#completed ??= this.#create('upstream_rq_completed');
      this.#completed.add(1);
    }
    if (code < 100 || code >= CODES) return;
    const codeClass = Math.trunc(code / 100);
    const byClass = this.#byClass[codeClass] ?? this.#createClass(codeClass);
    const byCode = this.#byCode[code] ?? this.#createCode(code);
    byClass.add(1);
    byCode.add(1);
  }

  /** Of a prefixed set: how long the response took. */
  recordTime(elapsedMs: number): void {
    this.#time ??= this.#stats.dynamicTime(this.#scope, `${this.#prefix}upstream_rq_time`);
    this.#time.record(elapsedMs);
  }

  #createClass(codeClass: number): DynamicCounter {
    const counter = this.#create(`upstream_rq_${codeClass}xx`);
    this.#byClass[codeClass] = counter;
    return counter;
  }

  #createCode(code: number): DynamicCounter {
    const counter = this.#create(`upstream_rq_${code}`);
    this.#byCode[code] = counter;
    return counter;
  }

  #create(name: string): DynamicCounter {
    return this.#stats.dynamicCounter(this.#scope, this.#prefix + name);
  }
}
