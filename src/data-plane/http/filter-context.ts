// What the filters of one connection manager are made with, over the parts of the worker that they may know.

import { type Clock, systemMonotonicMs } from '../../base/clock.ts';
import { WeirError } from '../../base/errors.ts';
import { isWithin, type RuntimeValues } from '../../base/runtime.ts';
import type { Logger } from '../../log/index.ts';
import type {
  Fraction,
  HeaderMatch,
  PathMatch,
  QueryParameterMatch,
  RouteConditions,
  RuntimeSetting,
} from '../../snapshot/index.ts';
import type { RequestHead } from '../../wasm/http1.ts';
import { HealthMask } from '../../wasm/shared-records.ts';
import { compileHeaderMatch } from '../route/header-matcher.ts';
import { compileQueryParameterMatch } from '../route/query-matcher.ts';
import { compileMatch } from '../route/route.ts';
import { RouteRequest } from '../route/route-request.ts';
import { UpstreamCalls } from '../router/upstream-call.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import type {
  FilterCallbacks,
  FilterContext,
  FilterCounter,
  FilterGauge,
  FilterTimes,
  HeadTest,
  HostCounts,
  ServerHealth,
} from './filter.ts';
import type { CallReceiver, CallRequest } from './filter-call.ts';
import type { ProxyHeaders } from './proxy-headers.ts';
import type { Taps } from './taps.ts';

const { degraded: DEGRADED } = HealthMask;

export class ChainContext implements FilterContext {
  readonly clock: Clock;
  readonly headerNames: ProxyHeaders;
  readonly serverHealth: ServerHealth;
  readonly taps: Taps;
  readonly #context: WorkerContext;
  readonly #clusters: ClusterMap;
  readonly #calls: UpstreamCalls;
  readonly runtime: RuntimeValues;
  readonly #cells: Readonly<Record<string, number>>;
  readonly #statScope: string;
  /** From the worker's own clock to that of the system. */
  readonly #clockOffsetMs: number;
  /** Filled anew for each test; before the router nobody has found out yet whether a request is internal. */
  readonly #request: RouteRequest;

  /** @param statScope with its final dot. @param cells of what the filters count, by name. */
  constructor(
    context: WorkerContext,
    clusters: ClusterMap,
    statScope: string,
    cells: Readonly<Record<string, number>>,
  ) {
    this.#context = context;
    this.taps = context.taps;
    this.runtime = context.runtime;
    this.#cells = cells;
    this.#statScope = statScope;
    this.clock = context.clock;
    this.headerNames = context.proxyHeaders;
    this.serverHealth = context.serverHealth;
    this.#clusters = clusters;
    this.#calls = new UpstreamCalls(context, clusters);
    this.#request = new RouteRequest(context.random);
    this.#clockOffsetMs = systemMonotonicMs() - context.clock.monotonicMs();
  }

  compileHeaders(matches: readonly HeaderMatch[]): HeadTest {
    const tests = matches.map(compileHeaderMatch);
    const internalNames = this.headerNames.spellings('internal');
    const asksOfOrigin = matches.some(({ name }) => internalNames.includes(name));
    return (head) => {
      this.#request.read(head, asksOfOrigin && internalNames.some((name) => head.hasField(name)), true);
      return tests.every((test) => test(this.#request));
    };
  }

  compileQuery(matches: readonly QueryParameterMatch[]): HeadTest {
    const tests = matches.map(compileQueryParameterMatch);
    return (head) => {
      this.#request.read(head, false, true);
      return tests.every((test) => test(this.#request));
    };
  }

  compileMatch(
    match: PathMatch,
    conditions: RouteConditions | null,
  ): (head: RequestHead, callbacks: FilterCallbacks) => boolean {
    const matches = compileMatch(match, conditions, this.runtime);
    return (head, callbacks) => {
      const isInternal = this.headerNames.spellings('internal').some((name) => head.hasField(name));
      const dynamicMetadata = callbacks.facts(null).metadata('DYNAMIC');
      this.#request.read(head, isInternal, true, { dynamicMetadata, downstream: callbacks.connection });
      return matches(this.#request);
    };
  }

  sharedNowMs(): number {
    return this.clock.monotonicMs() + this.#clockOffsetMs;
  }

  counter(name: string): FilterCounter {
    const { stats } = this.#context;
    const index = stats.base(this.#cellOf(name));
    return {
      add(n) {
        stats.values[index]! += n;
      },
    };
  }

  gauge(name: string): FilterGauge {
    const { stats } = this.#context;
    const cell = this.#cellOf(name);
    return {
      ...this.counter(name),
      get total() {
        return stats.total(cell);
      },
    };
  }

  namedCounter(name: string): FilterCounter {
    return this.#context.stats.dynamicCounter(this.#statScope, name);
  }

  namedTime(name: string): FilterTimes {
    return this.#context.stats.dynamicTime(this.#statScope, name);
  }

  get log(): Logger {
    return this.#context.logs.filter;
  }

  random(): number {
    return this.#context.random.u32();
  }

  share(setting: RuntimeSetting<Fraction>): () => boolean {
    const { runtime, random } = this.#context;
    const share = runtime.share(setting);
    return () => isWithin(share.value, random.u32());
  }

  call(request: CallRequest, receiver: CallReceiver): void {
    const tell = (told: () => void): void => {
      try {
        told();
      } catch (error) {
        this.#context.logFault('what a filter made of an answer', error);
      }
    };
    // The head at hand lies in the codec, which the question may go through.
    queueMicrotask(() => {
      this.#calls.begin(request, {
        onAnswer: (answer) => tell(() => receiver.onAnswer(answer)),
        onCallFailure: (failure) => tell(() => receiver.onCallFailure(failure)),
      });
    });
  }

  countHosts(name: string): HostCounts | undefined {
    const cluster = this.#clusters.get(name);
    if (cluster === undefined) return undefined;
    const counts = { total: 0, healthy: 0, degraded: 0 };
    for (const { healthFlags } of cluster.hosts) {
      counts.total += 1;
      if (healthFlags === 0) counts.healthy += 1;
      else if ((healthFlags & ~DEGRADED) === 0) counts.degraded += 1;
    }
    return counts;
  }

  #cellOf(name: string): number {
    const cell = this.#cells[name];
    if (cell === undefined) throw new WeirError('WEIR_UNKNOWN_COUNTER', `no filter has said that it counts ${name}`);
    return cell;
  }
}
