// One cluster in this worker: its settings, members, balancer, circuit breakers and stats. Step 5 of the request
// flow. Replaced as a whole when its settings change; a change of members alone keeps the object and the pools.
//
//   ACTIVE ──removed, replaced──► RETIRED ──last use over──► UNUSED
//
// A request uses its cluster from the choice of it to its end, also between two tries; so does each host. Main may give the
// cluster's places in shared memory to others once every worker has said that its one is unused.

import { proxyHeader } from '../../base/proxy-header.ts';
import { RandomSequence } from '../../base/random.ts';
import { ZONE_ROUTING_ENABLED } from '../../base/runtime-values.ts';
import type {
  AggregateShares,
  CircuitBreakerThresholds,
  ClusterSnapshot,
  HostsUpdate,
  Metadata,
  ResponseHeadLimits,
  UpstreamTlsSettings,
} from '../../snapshot/index.ts';
import { withUpstreamContexts } from '../../snapshot/index.ts';
import type { DynamicCounter, DynamicHistogram } from '../../stats/index.ts';
import { CLUSTER_LOAD_STATS, CLUSTER_STATS, cleanStatName, HTTP1_STATS } from '../../stats/index.ts';
import { ClusterCount, ClusterPriority } from '../../wasm/shared-records.ts';
import { RequestForm } from '../http/codec/http1/request-form.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';
import { RequestHasher } from '../route/hash-policy.ts';
import { compileMirror, type Mirror } from '../route/mirror.ts';
import { compileRetryPolicy, type RetryPolicy } from '../route/retry-policy.ts';
import type { WorkerContext } from '../worker-context.ts';
import { AggregateHosts } from './aggregate-hosts.ts';
import { AttemptMeasures } from './attempt-measures.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import type { Destinations } from './destinations.ts';
import { ForwardDestinations } from './forward-destinations.ts';
import { Host } from './host.ts';
import { HostForecast } from './host-forecast.ts';
import { orderHosts } from './host-order.ts';
import type { HostSelection } from './host-selection.ts';
import type { ClusterLoads } from './load-balancer/bounded-picker.ts';
import { LoadBalancer } from './load-balancer/load-balancer.ts';
import type { DrawContext, PickContext } from './load-balancer/pick-context.ts';
import { NO_HOST } from './load-balancer/source-picker.ts';
import { LoadShedding } from './load-shedding.ts';
import { OriginalDestinations } from './original-destinations.ts';
import { OutlierRules } from './outlier-monitor.ts';
import { type OverrideHost, OverrideHosts } from './override-hosts.ts';
import { type CreatePool, createPool } from './pool/create-pool.ts';
import { RequestServerName } from './request-server-name.ts';
import { ResponseCodeStats } from './response-code-stats.ts';
import type { RetiredHosts } from './retired-hosts.ts';
import { Transports } from './tls/transports.ts';
import type { UpstreamTls } from './tls/upstream-tls.ts';

const { rq_dropped, rq_drop_overload } = CLUSTER_LOAD_STATS.index;

/** What an upstream may send as head, unless its cluster says otherwise. */
const RESPONSE_HEAD_LIMITS: ResponseHeadLimits = { maxHeadBytes: 60 * 1024, maxFields: 100 };

export type ClusterRuntimeSettings = ClusterSnapshot['settings'];

const NO_SHARES: AggregateShares = { shares: [], priorities: [] };

/** Where responses of a cluster are counted, by the request's origin and the host's kind. */
export interface ClusterResponseCodes {
  readonly all: ResponseCodeStats;
  readonly internal: ResponseCodeStats;
  readonly external: ResponseCodeStats;
  readonly canary: ResponseCodeStats;
  /** Of tries that were followed by a retry; in none of the others. */
  readonly retry: ResponseCodeStats;
}

export class Cluster {
  readonly name: string;
  #settings: ClusterRuntimeSettings;
  /** First cell of CLUSTER_STATS in this worker's slab. */
  readonly statBase: number;
  /** The same of HTTP2_STATS; of no meaning where requests go over HTTP/1 alone. */
  readonly http2StatBase: number;
  readonly responseHeadLimits: ResponseHeadLimits;
  /** Null: requests go as they came. */
  readonly requestForm: RequestForm | null;
  /** Null unless requests say what servers are asked for. */
  readonly requestServerName: RequestServerName | null;
  /** Of a try, from its connection on; 0 for none. */
  readonly maxStreamDurationMs: number;
  /** Limits of requests with the default priority, and of proxied TCP connections. */
  readonly breaker: CircuitBreaker;
  readonly highBreaker: CircuitBreaker;
  readonly responseCodes: ClusterResponseCodes;
  readonly #codes: (prefix: string) => ResponseCodeStats;
  /** By the zone of hosts. */
  readonly #zoneCodes = new Map<string, ResponseCodeStats>();
  #hasHttp1Stats = false;
  /** Requests of equal hashes go to the same host: theirs are wanted. */
  readonly isHashed: boolean;
  /** Requests may ask something of their host's metadata. */
  readonly asksOfHosts: boolean;
  /** What they are hashed by; null for what their routes say. */
  readonly hasher: RequestHasher | null;
  /** In place of what routes say; null for theirs. */
  readonly retry: RetryPolicy | null;
  readonly mirrors: readonly Mirror[] | null;
  readonly isHealthChecked: boolean;
  readonly shedding: LoadShedding;
  /** Null: nobody wants to know more of attempts than all clusters tell. */
  readonly measures: AttemptMeasures | null;
  /** Null: nobody wants to know of outliers. */
  readonly outlierRules: OutlierRules | null;
  /** Requests name their hosts, by way of this; null where the balancer chooses. */
  readonly destinations: Destinations<Host> | null;
  /** Hosts are those of other clusters, who are asked for them; null where it has its own. */
  readonly #aggregate: AggregateHosts | null;
  readonly #context: WorkerContext;
  readonly #createPool: CreatePool;
  readonly #balancer: LoadBalancer;
  /** Whom filters may choose in its place. */
  readonly #overrides: OverrideHosts<Host>;
  /** Null unless connections are opened to hosts before requests choose them. */
  readonly forecast: HostForecast | null;
  /** In the order of the snapshot, which host lists refer to; empty where requests name their hosts. */
  #order: readonly Host[] = [];
  /** By the address of the record: a host that has left and comes again has another one. */
  readonly #hosts = new Map<number, Host>();
  /** Of CLUSTER_LOAD_STATS; null where no load is reported. */
  readonly #loadBase: number | null;
  /** Null until somebody asks for it. */
  #members: readonly Host[] | null = null;
  /** Null where all connections are plain. */
  readonly #transports: Transports | null;
  #uses = 0;
  #onUnused: (() => void) | null = null;

  /**
   * A cluster without members: `updateHosts` brings them.
   * @param create makes the pools of its hosts.
   * @param find other clusters of the worker.
   */
  constructor(
    context: WorkerContext,
    snapshot: ClusterSnapshot,
    create: CreatePool = createPool,
    find: (name: string) => Cluster | undefined = () => undefined,
  ) {
    const { settings } = snapshot;
    this.#context = context;
    this.#createPool = create;
    this.name = settings.name;
    this.#settings = settings;
    this.responseHeadLimits = settings.responseHeadLimits ?? RESPONSE_HEAD_LIMITS;
    this.requestForm = settings.requestForm === undefined ? null : new RequestForm(settings.requestForm);
    this.requestServerName = settings.requestServerName ? new RequestServerName(settings.requestServerName) : null;
    this.maxStreamDurationMs = settings.maxStreamDurationMs ?? 0;
    this.isHealthChecked = snapshot.isHealthChecked;
    this.shedding = new LoadShedding(context.runtime, context.random, settings.name, settings.dropShare);
    this.retry = settings.retry === null ? null : compileRetryPolicy(settings.retry);
    this.mirrors = settings.mirrors?.map((policy) => compileMirror(policy, context.runtime)) ?? null;
    this.measures = AttemptMeasures.of(context, snapshot);
    this.outlierRules = settings.outlierDetection ? new OutlierRules(context, settings.outlierDetection) : null;
    const isAggregate = settings.aggregate !== undefined;
    this.#aggregate = isAggregate ? new AggregateHosts(context.random, find, snapshot.aggregate ?? NO_SHARES) : null;
    const isHashed = settings.lbPolicy === 'RING_HASH' || settings.lbPolicy === 'MAGLEV';
    // One of its clusters may want to know.
    this.isHashed = isHashed || isAggregate;
    this.asksOfHosts = settings.subsets !== null || isAggregate;
    const { policies } = settings.hashing;
    this.hasher = policies.length === 0 ? null : new RequestHasher(policies);
    this.statBase = context.stats.base(snapshot.statBlock);
    this.http2StatBase = context.stats.base(snapshot.http2Block);
    this.#loadBase = snapshot.loadBlock === undefined ? null : context.stats.base(snapshot.loadBlock);
    this.destinations = this.#destinations(snapshot);
    const { circuitBreakers } = settings;
    const breaker = (priority: ClusterPriority, limits: CircuitBreakerThresholds): CircuitBreaker =>
      new CircuitBreaker(context, snapshot.recordAddress, settings.name, priority, limits);
    this.breaker = breaker(ClusterPriority.default, circuitBreakers.default);
    this.highBreaker = breaker(ClusterPriority.high, circuitBreakers.high);
    const scope = `cluster.${settings.statName}.`;
    context.stats.openScope(scope);
    this.#transports = Transports.of(context, snapshot, scope);
    const codes = (prefix: string): ResponseCodeStats => new ResponseCodeStats(context.stats, scope, prefix);
    this.#codes = codes;
    this.responseCodes = {
      all: codes(''),
      internal: codes('internal.'),
      external: codes('external.'),
      canary: codes('canary.'),
      retry: codes('retry.'),
    };
    this.#balancer = new LoadBalancer({
      kernel: context.lbKernel,
      seeds: context.random,
      random: new RandomSequence(context.random.u32()),
      isHashed,
      subsets: settings.subsets,
      loads: this.#loads(snapshot.recordAddress),
      zoneRouting: context.runtime.share({
        key: ZONE_ROUTING_ENABLED,
        default: { numerator: settings.zoneRouting?.enabledPercent ?? 0, denominator: 100 },
      }),
      count: (event) => {
        context.stats.values[this.statBase + CLUSTER_STATS.index[event]]! += 1;
      },
    });
    this.#overrides = new OverrideHosts(settings.overrideHealth);
    const ratio = settings.preconnect?.predictiveRatio ?? 1;
    this.forecast = ratio > 1 && !isAggregate ? new HostForecast(ratio, () => this.#pick(null)) : null;
  }

  get settings(): ClusterRuntimeSettings {
    return this.#settings;
  }

  get hosts(): readonly Host[] {
    return this.destinations === null ? this.#order : [...this.#hosts.values()];
  }

  /** A request of a client or of the proxy's own has been turned away for the sake of the cluster. @param isAssigned by its load assignment. */
  noteDropped(isAssigned: boolean): void {
    if (this.#loadBase === null) return;
    this.#context.stats.values[this.#loadBase + rq_dropped]! += 1;
    if (isAssigned) this.#context.stats.values[this.#loadBase + rq_drop_overload]! += 1;
  }

  /** The same, and the same list until the next update of them. */
  get members(): readonly Host[] {
    this.#members ??= [...this.hosts];
    return this.#members;
  }

  breakerFor(priority: ClusterPriority): CircuitBreaker {
    return priority === ClusterPriority.default ? this.breaker : this.highBreaker;
  }

  /** Makes room for a pool of another host or client, if one of this worker carries nothing. @returns whether one has gone. */
  closeUnusedPool(priority: ClusterPriority): boolean {
    for (const host of this.#hosts.values()) if (host.closeUnusedPool(priority)) return true;
    return false;
  }

  /** True when the snapshot differs from this cluster by its members only. */
  hasSameSettings(snapshot: ClusterSnapshot): boolean {
    return JSON.stringify(snapshot.settings) === JSON.stringify(this.settings);
  }

  /** Connections from now on are secured by other settings. @param changed by place (upstreamContextsOf). */
  secure(changed: ReadonlyMap<number, UpstreamTlsSettings>): void {
    this.#settings = withUpstreamContexts(this.settings, changed);
    this.#transports?.update(changed);
  }

  /** Takes over the members. Those that stay keep their connections; those that left drain, and go to `retired`. */
  updateHosts(
    { hostLists, hosts, aggregate }: Pick<ClusterSnapshot, 'hosts' | 'hostLists' | 'aggregate'>,
    retired: RetiredHosts,
  ): void {
    const order = hosts.map(({ recordAddress }) => recordAddress);
    const update = { hostLists, order, hosts, health: order, amendment: null };
    this.applyUpdate(aggregate === undefined ? update : { ...update, aggregate }, retired);
  }

  /** The same with what has changed alone. */
  applyUpdate(
    { hostLists, order, hosts, health, amendment, dropShare, aggregate }: Omit<HostsUpdate, 'cluster'>,
    retired: RetiredHosts,
  ): void {
    const known = this.#hosts;
    const added = new Map<number, Host>();
    for (const member of amendment === null ? hosts : [...hosts, ...amendment.joined]) {
      const host = known.get(member.recordAddress);
      if (host === undefined) added.set(member.recordAddress, new Host(this.#context, this, member, this.#createPool));
      else host.update(member);
    }
    for (const record of health) known.get(record)?.noteHealth();
    const leaving = order === null ? this.#amend(added, amendment?.gone ?? []) : this.#reorder(order, added);
    this.#members = null;
    this.#balancer.setLists(hostLists);
    this.#overrides.forget();
    if (aggregate !== undefined) this.#aggregate?.update(aggregate);
    if (dropShare !== undefined) {
      this.#settings = { ...this.#settings, dropShare };
      this.shedding.drop(dropShare);
    }
    this.forecast?.forget(this.#order);
    for (const host of leaving) retired.add(host);
    if ((added.size > 0 || leaving.length > 0) && this.settings.closeConnectionsOnHostSetChange) {
      for (const host of this.#hosts.values()) host.renewConnections();
    }
    if (this.destinations === null) return;
    for (const host of leaving) this.destinations.remove(host);
    for (const host of added.values()) this.destinations.add(host);
  }

  /**
   * The host for a request, or null when there is none to use; for clusters without `destinations`. Hot.
   * @param request what the choice may go by; null when nothing is known.
   * @param selection what else it asks; null for nothing.
   */
  chooseHost(request: PickContext | null, selection: HostSelection | null = null): Host | null {
    if (this.#aggregate !== null) return this.#aggregate.choose(request, selection);
    if (selection !== null) return this.#select(request, selection);
    return this.forecast?.take() ?? this.#pick(request);
  }

  /**
   * The host that a filter has named for a request.
   * @param asked null where none has. @returns undefined where the choice goes on as ever, null for no host at all. Hot.
   */
  overriddenHost(asked: OverrideHost | null): Host | null | undefined {
    if (asked === null) return undefined;
    return this.#aggregate === null
      ? this.#overrides.choose(asked, this.#hosts.values())
      : this.#aggregate.overridden(asked);
  }

  /** A host for a request of an aggregate cluster. @param draws says among which ones. Hot. */
  hostAt(request: PickContext | null, draws: DrawContext): Host | null {
    const index = this.#balancer.pick(request, draws);
    return index === NO_HOST ? null : this.#order[index]!;
  }

  /** Of one of its hosts, as retries count them. */
  priorityOf(host: Host): number {
    return this.#aggregate === null ? host.priority : this.#aggregate.priorityOf(host);
  }

  #pick(request: PickContext | null): Host | null {
    const index = this.#balancer.pick(request);
    return index === NO_HOST ? null : this.#order[index]!;
  }

  /** Where nothing refers to an order. @returns those that have gone. */
  #amend(added: ReadonlyMap<number, Host>, gone: readonly number[]): readonly Host[] {
    const leaving: Host[] = [];
    for (const record of gone) {
      const host = this.#hosts.get(record);
      if (host === undefined) continue;
      this.#hosts.delete(record);
      leaving.push(host);
    }
    for (const [record, host] of added) this.#hosts.set(record, host);
    return leaving;
  }

  /** @returns those that are not among the members any more. */
  #reorder(order: readonly number[], added: ReadonlyMap<number, Host>): readonly Host[] {
    const { hosts, leaving } = orderHosts(this.hosts, order, added);
    if (this.destinations === null) this.#order = hosts;
    for (const { record } of leaving) this.#hosts.delete(record);
    for (const [record, host] of added) this.#hosts.set(record, host);
    return leaving;
  }

  #destinations({ settings, lookups }: ClusterSnapshot): Destinations<Host> | null {
    const { originalDst, forwardProxy, connectTimeoutMs } = settings;
    const owner = { name: this.name, statBase: this.statBase };
    if (forwardProxy !== undefined && lookups !== undefined) {
      return new ForwardDestinations(this.#context, { ...owner, waitMs: lookups.waitMs }, forwardProxy, lookups);
    }
    if (originalDst === null) return null;
    return new OriginalDestinations(this.#context, { ...owner, waitMs: connectTimeoutMs }, originalDst);
  }

  #loads(record: number): ClusterLoads {
    const { records } = this.#context;
    const { requests } = ClusterCount;
    return {
      ofCluster: () =>
        records.clusterCount(record, ClusterPriority.default, requests) +
        records.clusterCount(record, ClusterPriority.high, requests),
      ofHost: (index) => records.activeRequests(this.#order[index]!.record),
    };
  }

  #select(request: PickContext | null, selection: HostSelection): Host | null {
    for (selection.draw = 0; ; selection.draw += 1) {
      const index = this.#balancer.pick(request, selection);
      if (index === NO_HOST) return null;
      const host = this.#order[index]!;
      if (selection.draw + 1 >= selection.maxDraws || selection.accepts(host)) return host;
    }
  }

  /** Somebody begins to use it, who may write to its places until `release`. Hot. */
  acquire(): void {
    this.#uses += 1;
  }

  /** Once for each `acquire`. Who ends may have a last word to count in the same turn. Hot. */
  release(): void {
    this.#uses -= 1;
    if (this.#onUnused !== null && this.#uses === 0) queueMicrotask(() => this.#tellUnused());
  }

  /**
   * The cluster is gone or replaced: closes idle connections at once and the others after their request.
   * @param onUnused told once, when no host and no request uses it any more.
   */
  retire(onUnused: () => void): void {
    this.#onUnused = onUnused;
    this.acquire();
    this.destinations?.close();
    for (const host of this.#hosts.values()) host.retire(() => {});
    this.release();
  }

  /** Responses of the hosts of a zone to requests from here; null unless it is known where both are. */
  codesOfZone(zone: string): ResponseCodeStats | null {
    const { localZone } = this.#context;
    if (localZone === '' || zone === '') return null;
    let codes = this.#zoneCodes.get(zone);
    if (codes === undefined) {
      codes = this.#codes(`zone.${cleanStatName(localZone)}.${cleanStatName(zone)}.`);
      this.#zoneCodes.set(zone, codes);
    }
    return codes;
  }

  /** What connections begin with that carry something for a client, or for nobody; null for nothing. */
  preambleFor(downstream: DownstreamConnection | null): Buffer | null {
    const { proxyHeader: header } = this.settings;
    return header === undefined ? null : proxyHeader(header, downstream);
  }

  /** How connections to a host with this metadata are secured; null for plain ones. */
  tlsOf(metadata: Metadata | undefined): UpstreamTls | null {
    return this.#transports === null ? null : this.#transports.of(metadata);
  }

  /** A counter among its stats that is named at run time; whoever counts on it again keeps it. */
  counter(name: string): DynamicCounter {
    return this.#context.stats.dynamicCounter(`cluster.${this.settings.statName}.`, name);
  }

  /** The same for a histogram of milliseconds. */
  time(name: string): DynamicHistogram {
    return this.#context.stats.dynamicTime(`cluster.${this.settings.statName}.`, name);
  }

  /** The cluster is spoken to in HTTP/1: it has the codec's stats from then on. */
  showHttp1Stats(): void {
    if (this.#hasHttp1Stats) return;
    this.#hasHttp1Stats = true;
    for (const name of Object.keys(HTTP1_STATS.index)) {
      this.counter(`http1.${name}`);
    }
  }

  close(): void {
    this.destinations?.close();
    for (const host of this.#hosts.values()) host.close();
  }

  #tellUnused(): void {
    const onUnused = this.#onUnused;
    if (onUnused === null || this.#uses > 0) return;
    this.#onUnused = null;
    this.#context.stats.closeScope(`cluster.${this.settings.statName}.`);
    onUnused();
  }
}
