// Makes requests wait, fail or be answered slowly, to try what their clients make of it. Worker thread; step 3 of the
// request flow.
//
//   head ──► meant? ──► delay ──► abort, or on to the upstream ──► response, piece by piece
//
// A request with any of these counts as one active fault until its stream is over.

import { isWithin, type RuntimeDerived } from '../../../base/runtime.ts';
import type {
  BodyData,
  FilterCallbacks,
  FilterContext,
  FilterCounter,
  FilterGauge,
  FilterStatus,
  HeadTest,
  HttpFilter,
  HttpFilterKind,
  LocalReply,
  SharedCount,
} from '../../../data-plane/index.ts';
import type { Fraction, RuntimeSetting } from '../../../snapshot/index.ts';
import { HEADER_ID, type RequestHead } from '../../../wasm/http1.ts';
import { Pacing, PIECE_MS } from './pacing.ts';
import type { FaultFilterSettings, FaultSettings } from './settings.ts';

const CLIENT_CLUSTER = HEADER_ID['x-proxy-downstream-service-cluster'];
const CLIENT_NODE = HEADER_ID['x-proxy-downstream-service-node'];
const METADATA_NAMESPACE = 'envoy.filters.http.fault';
/** Clients choose the names. */
const MAX_CLIENT_CLUSTERS = 1000;
const CLIENT_CLUSTER_NAME = /^[\w.-]{1,200}$/;
const NUMBER = /^\d{1,9}$/;
const KIB = 1024;
const OK = 200;

const ABORTED: LocalReply = { status: 503, body: 'fault filter abort', flag: 'FI', details: 'fault_filter_abort' };
const NOTHING: HttpFilter = {};

/** Where faults of one kind are counted, beside those of all clients. */
type CountedKind = 'delays_injected' | 'aborts_injected';

/** What a level says, ready to be asked. */
interface Level {
  readonly settings: FaultSettings;
  // What the runtime says in place of a share; undefined for nothing.
  readonly delayShare: RuntimeDerived<Fraction | undefined>;
  readonly abortShare: RuntimeDerived<Fraction | undefined>;
  readonly rateShare: RuntimeDerived<Fraction | undefined>;
  readonly passes: HeadTest;
  readonly nodes: ReadonlySet<string>;
}

/** What all requests of a connection manager share. */
class Faults {
  readonly context: FilterContext;
  readonly own: Level;
  readonly delays: FilterCounter;
  readonly aborts: FilterCounter;
  readonly slowed: FilterCounter;
  readonly #overflow: FilterCounter;
  readonly #active: FilterGauge;
  /** The same, of this configuration alone, and exact. */
  readonly #activeCount: SharedCount;
  readonly #byClient = new Map<string, FilterCounter>();
  readonly #spellings = new Map<string, readonly string[]>();

  constructor({ stats, activeCount, fault }: FaultFilterSettings, context: FilterContext) {
    this.context = context;
    this.own = levelOf(fault, context);
    this.delays = context.counter(stats.delays);
    this.aborts = context.counter(stats.aborts);
    this.slowed = context.counter(stats.slowed);
    this.#overflow = context.counter(stats.overflow);
    this.#active = context.gauge(stats.active);
    this.#activeCount = context.sharedCount(activeCount);
  }

  /** One more request has a fault, unless there are as many as may be, those of others under the same stat prefix with them. */
  begin({ maxActive }: FaultSettings): boolean {
    const most = this.context.runtime.integer(maxActive.key) ?? maxActive.default;
    const isFull = most !== Number.POSITIVE_INFINITY && this.#active.total >= most;
    if (isFull || !this.#activeCount.tryAdd(most)) {
      this.#overflow.add(1);
      return false;
    }
    this.#active.add(1);
    return true;
  }

  end(): void {
    this.#active.add(-1);
    this.#activeCount.remove();
  }

  countForClient(cluster: string, kind: CountedKind): void {
    if (!CLIENT_CLUSTER_NAME.test(cluster)) return;
    const name = `fault.${cluster}.${kind}`;
    let counter = this.#byClient.get(name);
    if (counter === undefined) {
      if (this.#byClient.size >= 2 * MAX_CLIENT_CLUSTERS) return;
      counter = this.context.namedCounter(name);
      this.#byClient.set(name, counter);
    }
    counter.add(1);
  }

  /** A number that the request itself says, whatever the spelling of its header; undefined without one. */
  numberIn(head: RequestHead, name: string): number | undefined {
    let spellings = this.#spellings.get(name);
    if (spellings === undefined) {
      spellings = this.context.headerNames.spellings(name);
      this.#spellings.set(name, spellings);
    }
    for (const spelling of spellings) {
      const text = head.headerByName(spelling);
      if (text !== undefined) return NUMBER.test(text) ? Number(text) : undefined;
    }
    return undefined;
  }
}

class FaultFilter implements HttpFilter {
  protected readonly faults: Faults;
  protected readonly callbacks: FilterCallbacks;
  readonly #level: Level;
  /** What the client calls itself; empty when it does not, or may not. */
  #clientCluster = '';
  #isActive = false;
  #abort: LocalReply | null = null;
  #cancelTimer: (() => void) | null = null;

  constructor(faults: Faults, callbacks: FilterCallbacks, level: Level) {
    this.faults = faults;
    this.callbacks = callbacks;
    this.#level = level;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    if (!this.#isMeant(head)) return 'continue';
    if (!this.callbacks.isFromEdge) this.#clientCluster = head.header(CLIENT_CLUSTER) ?? '';
    this.#drawRateLimit(head);
    const delayMs = this.#drawDelay(head);
    this.#abort = this.#drawAbort(head);
    if (delayMs > 0 && this.#activate()) {
      this.callbacks.addFlag('DI');
      this.#count('delays_injected', this.faults.delays);
      this.#cancelTimer = this.faults.context.clock.after(delayMs, () => this.#endDelay());
      return 'stop-and-pause';
    }
    return this.#mayAbort() ? 'stop' : 'continue';
  }

  onDestroy(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#isActive) this.faults.end();
  }

  #isMeant(head: RequestHead): boolean {
    const { settings, passes, nodes } = this.#level;
    const { upstreamCluster } = settings;
    if (upstreamCluster !== '' && upstreamCluster !== this.callbacks.routeCluster) return false;
    if (nodes.size > 0 && (this.callbacks.isFromEdge || !nodes.has(head.header(CLIENT_NODE) ?? ''))) return false;
    return settings.headers.length === 0 || passes(head);
  }

  /** Only the first fault of a request counts against the limit. */
  #activate(): boolean {
    const { settings } = this.#level;
    if (this.#isActive) return true;
    if (!this.faults.begin(settings)) return false;
    this.#isActive = true;
    if (settings.metadata !== null) this.callbacks.addMetadata(METADATA_NAMESPACE, settings.metadata);
    return true;
  }

  #count(kind: CountedKind, ofAll: FilterCounter): void {
    ofAll.add(1);
    if (this.#clientCluster !== '' && this.#level.settings.countsByClient) {
      this.faults.countForClient(this.#clientCluster, kind);
    }
  }

  // ---- What is drawn ----

  /** @returns 0 for no delay. */
  #drawDelay(head: RequestHead): number {
    const { delayShare, settings } = this.#level;
    const { delay } = settings;
    if (delay === null) return 0;
    const { share, fixedMs } = delay;
    if (fixedMs !== null) {
      const isDrawn = this.#happens(delayShare, share.default, 'delay.fixed_delay_percent');
      return isDrawn ? this.#integer(fixedMs, 'delay.fixed_duration_ms') : 0;
    }
    const ms = this.faults.numberIn(head, 'fault-delay-request') ?? 0;
    const wanted = this.#wanted(head, share, 'fault-delay-request-percentage');
    return ms > 0 && this.#happens(delayShare, wanted, 'delay.fixed_delay_percent') ? ms : 0;
  }

  #drawAbort(head: RequestHead): LocalReply | null {
    const { abortShare, settings } = this.#level;
    const { abort } = settings;
    if (abort === null) return null;
    const { share, status } = abort;
    const wanted = status === null ? this.#wanted(head, share, 'fault-abort-request-percentage') : share.default;
    const reply = status === null ? this.#wantedAbort(head) : this.#fixedAbort(status);
    return reply !== null && this.#happens(abortShare, wanted, 'abort.abort_percent') ? reply : null;
  }

  #fixedAbort({ kind, code }: NonNullable<NonNullable<FaultSettings['abort']>['status']>): LocalReply | null {
    if (kind === 'http') return httpAbort(this.#integer(code, 'abort.http_status'));
    return grpcAbort(this.#integer(code, 'abort.grpc_status'));
  }

  #wantedAbort(head: RequestHead): LocalReply | null {
    const status = this.faults.numberIn(head, 'fault-abort-request');
    if (status !== undefined) return httpAbort(status);
    const grpcStatus = this.faults.numberIn(head, 'fault-abort-grpc-request');
    return grpcStatus === undefined ? null : grpcAbort(grpcStatus);
  }

  #drawRateLimit(head: RequestHead): void {
    const { rateShare, settings } = this.#level;
    const { rateLimit } = settings;
    if (rateLimit === null) return;
    const { share, bytesPerSecond } = rateLimit;
    const isFixed = bytesPerSecond !== null;
    const rate = isFixed ? bytesPerSecond : KIB * (this.faults.numberIn(head, 'fault-throughput-response') ?? 0);
    const wanted = isFixed ? share.default : this.#wanted(head, share, 'fault-throughput-response-percentage');
    if (rate === 0 || !this.#happens(rateShare, wanted, '') || !this.#activate()) return;
    this.faults.slowed.add(1);
    this.slowDown(rate);
  }

  /** The share that the request asks for; the configured one is the most that it gets. */
  #wanted(head: RequestHead, { default: most }: RuntimeSetting<Fraction>, name: string): Fraction {
    const asked = this.faults.numberIn(head, name);
    return asked === undefined || asked >= most.numerator ? most : { ...most, numerator: asked };
  }

  /** @param ownKey last parts of the key for this client's cluster alone, which counts before that for all. */
  #happens(ofAll: RuntimeDerived<Fraction | undefined>, byDefault: Fraction, ownKey: string): boolean {
    const { context } = this.faults;
    const ofClient = ownKey === '' ? undefined : context.runtime.fraction(this.#keyOfClient(ownKey));
    return isWithin(ofClient ?? ofAll.value ?? byDefault, context.random());
  }

  #integer({ key, default: byDefault }: RuntimeSetting<number>, ownKey: string): number {
    const { runtime } = this.faults.context;
    return runtime.integer(this.#keyOfClient(ownKey)) ?? runtime.integer(key) ?? byDefault;
  }

  /** Empty, which is no key, where nobody says anything of this client. */
  #keyOfClient(ownKey: string): string {
    const isSaid = this.#clientCluster !== '' && this.faults.context.runtime.texts.size > 0;
    return isSaid ? `fault.http.${this.#clientCluster}.${ownKey}` : '';
  }

  // ---- What happens ----

  /** The response is to take its time. */
  protected slowDown(_bytesPerSecond: number): void {}

  #endDelay(): void {
    this.#cancelTimer = null;
    if (!this.#mayAbort()) this.callbacks.continueDecoding();
  }

  /** @returns true when the request has been answered. */
  #mayAbort(): boolean {
    if (this.#abort === null || !this.#activate()) return false;
    this.#count('aborts_injected', this.faults.aborts);
    this.callbacks.reply(this.#abort);
    return true;
  }
}

/** For requests whose responses may be slowed down: only these look at bodies. */
class SlowingFaultFilter extends FaultFilter {
  /** Null for a response that goes on as it comes. */
  #pacing: Pacing | null = null;
  /** Something is held back. */
  #isPacing = false;
  /** More has come since the last piece was let go, perhaps because it was: there is room then. */
  #hasMore = false;
  #cancelPiece: (() => void) | null = null;

  encodeData(_data: BodyData): FilterStatus {
    if (this.#pacing === null) return 'continue';
    this.#hasMore = true;
    if (!this.#isPacing) {
      this.#isPacing = true;
      this.#pacing.begin(this.faults.context.clock.monotonicMs());
      // What comes is held only once this filter has returned.
      this.#releaseIn(0);
    }
    return 'stop-and-pause';
  }

  encodeTrailers(): FilterStatus {
    return this.#isPacing ? 'stop-and-pause' : 'continue';
  }

  override onDestroy(): void {
    this.#cancelPiece?.();
    super.onDestroy();
  }

  protected override slowDown(bytesPerSecond: number): void {
    this.#pacing = new Pacing(bytesPerSecond);
  }

  #releaseIn(delayMs: number): void {
    this.#cancelPiece = this.faults.context.clock.after(delayMs, () => this.#release(this.#pacing!));
  }

  #release(pacing: Pacing): void {
    this.#hasMore = false;
    const held = this.callbacks.releaseResponse(pacing.take(this.faults.context.clock.monotonicMs()));
    if (held > 0 || this.#hasMore) {
      this.#releaseIn(PIECE_MS);
      return;
    }
    this.#cancelPiece = null;
    this.#isPacing = false;
    this.callbacks.continueEncoding();
  }
}

function httpAbort(status: number): LocalReply | null {
  return status >= 200 && status < 600 ? { ...ABORTED, status } : null;
}

/** To a client of something else it is a success by HTTP. */
function grpcAbort(grpcStatus: number): LocalReply {
  return { ...ABORTED, status: OK, grpcStatus };
}

function levelOf(settings: FaultSettings, context: FilterContext): Level {
  const shareOf = (part: { readonly share: RuntimeSetting<Fraction> } | null): RuntimeDerived<Fraction | undefined> =>
    context.runtime.derived((values) => (part === null ? undefined : values.fraction(part.share.key)));
  return {
    settings,
    delayShare: shareOf(settings.delay),
    abortShare: shareOf(settings.abort),
    rateShare: shareOf(settings.rateLimit),
    passes: context.compileHeaders(settings.headers),
    nodes: new Set(settings.nodes),
  };
}

export const FAULT_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'reads',
  compileForRoute: (settings, context) => levelOf(settings as FaultSettings, context),
  compile(settings, context) {
    const faults = new Faults(settings as FaultFilterSettings, context);
    return (callbacks) => {
      const [level = faults.own] = callbacks.routeSettings as readonly Level[];
      const { delay, abort, rateLimit } = level.settings;
      if (delay === null && abort === null && rateLimit === null) return NOTHING;
      const Filter = rateLimit === null ? FaultFilter : SlowingFaultFilter;
      return new Filter(faults, callbacks, level);
    };
  },
};
