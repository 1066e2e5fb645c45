// What the filters of one connection manager are made with, over the parts of the worker that they may know.

import type { Clock } from '../../base/clock.ts';
import type { HeaderMatch } from '../../snapshot/index.ts';
import { HealthMask } from '../../wasm/shared-records.ts';
import { compileHeaderMatch } from '../route/header-matcher.ts';
import { RouteRequest } from '../route/route-request.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { FilterContext, HeadTest, HostCounts, ServerHealth } from './filter.ts';
import type { ProxyHeaders } from './proxy-headers.ts';

const { degraded: DEGRADED } = HealthMask;

export class ChainContext implements FilterContext {
  readonly clock: Clock;
  readonly headerNames: ProxyHeaders;
  readonly serverHealth: ServerHealth;
  readonly #clusters: ClusterMap;
  /** Filled anew for each test; before the router nobody has found out yet whether a request is internal. */
  readonly #request: RouteRequest;

  constructor(context: WorkerContext, clusters: ClusterMap) {
    this.clock = context.clock;
    this.headerNames = context.proxyHeaders;
    this.serverHealth = context.serverHealth;
    this.#clusters = clusters;
    this.#request = new RouteRequest(context.random, true);
  }

  compileHeaders(matches: readonly HeaderMatch[]): HeadTest {
    const tests = matches.map(compileHeaderMatch);
    return (head) => {
      this.#request.read(head, false);
      return tests.every((test) => test(this.#request));
    };
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
}
