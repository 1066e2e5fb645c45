// What the filters of one connection manager are made with, over the parts of the worker that they may know.

import type { Logger } from '../../log/index.ts';
import type { HeaderMatch, MatchTree, PathMatch, QueryParameterMatch, RouteConditions } from '../../snapshot/index.ts';
import type { RequestHead } from '../../wasm/http1.ts';
import { HealthMask } from '../../wasm/shared-records.ts';
import { FilterFacilities } from '../filter-facilities.ts';
import { compileMatchTree, type FindMatch } from '../matching/match-tree.ts';
import { REQUEST_INPUTS } from '../matching/request-inputs.ts';
import { type MatchedResponse, RESPONSE_INPUTS } from '../matching/response-inputs.ts';
import { compileHeaderMatch } from '../route/header-matcher.ts';
import { compileQueryParameterMatch } from '../route/query-matcher.ts';
import { compileMatch } from '../route/route.ts';
import { RouteRequest } from '../route/route-request.ts';
import type { RoutesInUse, RoutesUser } from '../route/routes-in-use.ts';
import { UpstreamCalls } from '../router/upstream-call.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import type {
  FilterCallbacks,
  FilterContext,
  HeadTest,
  HostCounts,
  ServerHealth,
  SharedCount,
  TreeSubject,
} from './filter.ts';
import type { CallReceiver, CallRequest } from './filter-call.ts';
import type { NewsListener } from './filter-news.ts';
import type { ProxyHeaders } from './proxy-headers.ts';
import type { Taps } from './taps.ts';

const { degraded: DEGRADED } = HealthMask;

export class ChainContext extends FilterFacilities implements FilterContext, RoutesUser {
  readonly headerNames: ProxyHeaders;
  readonly serverHealth: ServerHealth;
  readonly taps: Taps;
  readonly #clusters: ClusterMap;
  readonly #calls: UpstreamCalls;
  protected override readonly statScope: string;
  readonly #closing: (() => void)[] = [];
  #isClosed = false;
  /** Of what routes of a table say that is a resource of its own. */
  readonly #ofRoutes = new Map<RoutesInUse, ChainContext>();
  /** Filled anew for each test; before the router nobody has found out yet whether a request is internal. */
  readonly #request: RouteRequest;

  /** @param statScope with its final dot. @param cells of what the filters count, by name. */
  constructor(
    context: WorkerContext,
    clusters: ClusterMap,
    statScope: string,
    cells: Readonly<Record<string, number>>,
  ) {
    super(context, cells);
    this.taps = context.taps;
    this.statScope = statScope;
    this.headerNames = context.proxyHeaders;
    this.serverHealth = context.serverHealth;
    this.#clusters = clusters;
    this.#calls = new UpstreamCalls(context, clusters);
    this.#request = new RouteRequest(context.random);
  }

  /** That with which what routes of a table say is prepared: it ends with the table, or with this one. */
  ofRoutes(routes: RoutesInUse): ChainContext {
    if (routes.filterCells === null) return this;
    let own = this.#ofRoutes.get(routes);
    if (own === undefined) {
      const cells = { ...this.cells, ...routes.filterCells };
      own = new ChainContext(this.context, this.#clusters, this.statScope, cells);
      this.#ofRoutes.set(routes, own);
      routes.users.add(this);
    }
    return own;
  }

  forget(routes: RoutesInUse): void {
    this.#ofRoutes.get(routes)?.close();
    this.#ofRoutes.delete(routes);
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
      this.#read(head, callbacks);
      return matches(this.#request);
    };
  }

  compileTree<Action, Result>(
    tree: MatchTree<Action>,
    resultOf: (action: Action) => Result,
  ): (head: RequestHead, sender: TreeSubject) => Result | undefined {
    const find = compileMatchTree(tree, REQUEST_INPUTS, this.matchTools, resultOf);
    return (head, sender) => {
      this.#read(head, sender);
      return find(this.#request);
    };
  }

  #read(head: RequestHead, sender: TreeSubject): void {
    const isInternal = this.headerNames.spellings('internal').some((name) => head.hasField(name));
    const dynamicMetadata = sender.facts(null).metadata('DYNAMIC');
    const { clientAddress, connection: connectionEnds } = sender;
    this.#request.read(head, isInternal, true, {
      dynamicMetadata,
      clientAddress,
      downstream: connectionEnds,
      connectionEnds,
      namedHost: null,
      state: (key) => sender.state(key),
    });
  }

  compileResponseTree<Action, Result>(
    tree: MatchTree<Action>,
    resultOf: (action: Action) => Result,
  ): FindMatch<MatchedResponse, Result> {
    return compileMatchTree(tree, RESPONSE_INPUTS, this.matchTools, resultOf);
  }

  onClose(act: () => void): void {
    if (this.#isClosed) this.#run(act);
    else this.#closing.push(act);
  }

  close(): void {
    this.#isClosed = true;
    for (const act of this.#closing.splice(0)) this.#run(act);
    for (const routes of [...this.#ofRoutes.keys()]) {
      routes.users.delete(this);
      this.forget(routes);
    }
  }

  #run(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.context.logFault('what a filter does at its end', error);
    }
  }

  get log(): Logger {
    return this.context.logs.filter;
  }

  call(request: CallRequest, receiver: CallReceiver): void {
    const tell = (told: () => void): void => {
      try {
        told();
      } catch (error) {
        this.context.logFault('what a filter made of an answer', error);
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

  tellAll(topic: string, text: string): void {
    this.context.filterNews.tell(this.statScope + topic, text);
  }

  onTold(topic: string, listener: NewsListener): void {
    this.onClose(this.context.filterNews.listen(this.statScope + topic, listener));
  }

  sharedCount(name: string): SharedCount {
    const record = this.cellOf(name);
    const { records } = this.context;
    return {
      tryAdd: (limit) => records.tryAcquireCount(record, limit),
      remove: () => records.addCount(record, -1),
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
