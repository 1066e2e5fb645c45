// The stats that requests have by what they are: those of their virtual cluster and of their route. Made once per route
// table; requests of routes without either know of none of it.

import type { VirtualHostSnapshot } from '../../snapshot/index.ts';
import {
  OTHER_VIRTUAL_CLUSTER,
  ROUTE_STATS,
  routeScope,
  virtualClusterScope,
  type WorkerStats,
} from '../../stats/index.ts';
import { ResponseCodeStats } from '../upstream/response-code-stats.ts';
import { compileHeaderMatch, type RequestTest } from './header-matcher.ts';
import type { RouteRequest } from './route-request.ts';

const { upstream_rq_completed, upstream_rq_time } = ROUTE_STATS.index;

/** The cells of one scope. */
interface ScopeStats {
  readonly base: number;
  readonly codes: ResponseCodeStats;
}

/** Where a request is counted beside its cluster. */
export class RequestTally {
  /** Empty where it has none with a name of its own. */
  readonly virtualCluster: string;
  readonly #stats: WorkerStats;
  readonly #scopes: readonly ScopeStats[];

  constructor(stats: WorkerStats, virtualCluster: string, scopes: readonly ScopeStats[]) {
    this.#stats = stats;
    this.virtualCluster = virtualCluster;
    this.#scopes = scopes;
  }

  /** @param stat of ROUTE_STATS. */
  add(stat: number): void {
    for (const { base } of this.#scopes) this.#stats.values[base + stat]! += 1;
  }

  /** A response, or what the client is told in its place. */
  countStatus(status: number): void {
    this.add(upstream_rq_completed);
    for (const { codes } of this.#scopes) codes.count(status);
  }

  recordTime(elapsedMs: number): void {
    for (const { base } of this.#scopes) this.#stats.record(base + upstream_rq_time, elapsedMs);
  }
}

/** Chooses among those of a route: one for each virtual cluster of its host, and one for all other requests. */
export type ChooseTally = (request: RouteRequest) => RequestTally;

/** All scopes of one route table. It holds them open until it is closed. */
export class TallyScopes {
  readonly #stats: WorkerStats;
  readonly #blocks: Readonly<Record<string, number>>;
  readonly #open = new Map<string, ScopeStats>();

  /** @param blocks first cells of ROUTE_STATS, by scope. */
  constructor(stats: WorkerStats, blocks: Readonly<Record<string, number>>) {
    this.#stats = stats;
    this.#blocks = blocks;
  }

  /** @returns what makes the tallies of each route of the virtual host, by its stat prefix. */
  ofHost({ name, virtualClusters = [] }: TalliedHost): (statPrefix: string | undefined) => ChooseTally | null {
    const tests = virtualClusters.map(({ headers }) => headers.map(compileHeaderMatch));
    const ofClusters = virtualClusters.map((each) => this.#scope(virtualClusterScope(name, each.name)));
    const others = tests.length === 0 ? [] : [this.#scope(virtualClusterScope(name, OTHER_VIRTUAL_CLUSTER))];
    return (statPrefix) => {
      const ofRoute = statPrefix === undefined ? [] : [this.#scope(routeScope(name, statPrefix))];
      const rest = [...others, ...ofRoute];
      if (rest.length === 0) return null;
      const tallies = ofClusters.map(
        (scope, index) => new RequestTally(this.#stats, virtualClusters[index]!.name, [scope, ...ofRoute]),
      );
      return choice(tests, tallies, new RequestTally(this.#stats, '', rest));
    };
  }

  /** No request is counted any more. */
  close(): void {
    for (const scope of this.#open.keys()) this.#stats.closeScope(scope);
    this.#open.clear();
  }

  #scope(scope: string): ScopeStats {
    const known = this.#open.get(scope);
    if (known !== undefined) return known;
    this.#stats.openScope(scope);
    const opened = {
      base: this.#stats.base(this.#blocks[scope]!),
      codes: new ResponseCodeStats(this.#stats, scope, ''),
    };
    this.#open.set(scope, opened);
    return opened;
  }
}

type TalliedHost = Pick<VirtualHostSnapshot, 'name' | 'virtualClusters'>;

function choice(
  tests: readonly (readonly RequestTest[])[],
  tallies: readonly RequestTally[],
  others: RequestTally,
): ChooseTally {
  if (tests.length === 0) return () => others;
  return (request) => {
    const index = tests.findIndex((all) => all.every((holds) => holds(request)));
    return index === -1 ? others : tallies[index]!;
  };
}
