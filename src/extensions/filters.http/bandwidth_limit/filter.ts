// Lets bodies go on no faster than a rate that requests, responses and all workers share. Worker thread; step 3 of the
// request flow.
//
//   body ──► fits into this fill? ──► on
//                └── held, and served in turn with each fill of the bucket (byte-share.ts)

import type { RuntimeDerived } from '../../../base/runtime.ts';
import type {
  BodyData,
  EditableHead,
  FilterCallbacks,
  FilterContext,
  FilterCounter,
  FilterGauge,
  FilterStatus,
  FilterTimes,
  HttpFilter,
  HttpFilterKind,
  Trailers,
} from '../../../data-plane/index.ts';
import { ByteShare, type WaitingBody } from './byte-share.ts';
import type { BandwidthLimitSettings, BandwidthStatNames, BandwidthTrailers } from './settings.ts';

const NOTHING: HttpFilter = {};
const NOT_STARTED = -1;

/** What is counted of one direction. */
class DirectionStats {
  readonly enabled: FilterCounter;
  readonly enforced: FilterCounter;
  readonly incomingTotal: FilterCounter;
  readonly allowedTotal: FilterCounter;
  readonly pending: FilterGauge;
  readonly incoming: FilterGauge;
  readonly allowed: FilterGauge;
  readonly duration: FilterTimes;

  constructor(names: BandwidthStatNames, context: FilterContext) {
    this.enabled = context.counter(names.enabled);
    this.enforced = context.counter(names.enforced);
    this.incomingTotal = context.counter(names.incomingTotal);
    this.allowedTotal = context.counter(names.allowedTotal);
    this.pending = context.gauge(names.pending);
    this.incoming = context.gauge(names.incoming);
    this.allowed = context.gauge(names.allowed);
    this.duration = context.time(names.duration);
  }
}

/** What a level says, ready to be asked. */
class Level {
  readonly settings: BandwidthLimitSettings;
  readonly context: FilterContext;
  readonly request: DirectionStats;
  readonly response: DirectionStats;
  /** Null where nothing is limited. */
  readonly share: ByteShare | null;
  readonly #isEnabled: RuntimeDerived<boolean>;

  constructor(settings: BandwidthLimitSettings, context: FilterContext) {
    const { key, default: byDefault } = settings.enabled;
    this.settings = settings;
    this.context = context;
    this.request = new DirectionStats(settings.request, context);
    this.response = new DirectionStats(settings.response, context);
    this.share = settings.bucket && new ByteShare(settings.bucket, context);
    this.#isEnabled = context.runtime.derived((values) => values.flag(key) ?? byDefault);
  }

  get isEnabled(): boolean {
    return this.#isEnabled.value;
  }
}

/** One body on its way, in one direction. */
class LimitedBody implements WaitingBody {
  /** From its first bytes to its last. */
  totalMs = 0;
  /** Of these it has been held back. */
  heldMs = 0;
  readonly #share: ByteShare;
  readonly #stats: DirectionStats;
  readonly #context: FilterContext;
  readonly #callbacks: FilterCallbacks;
  readonly #isRequest: boolean;
  #startedMs = NOT_STARTED;
  #waitsSinceMs = NOT_STARTED;
  /** The fill since which it counts what it has had, and how much that is. */
  #fill = 0;
  #had = 0;
  /** Bytes that have come, and those of them that have gone on. */
  #come = 0;
  #gone = 0;
  #hasCome = false;
  #isOver = false;

  constructor(level: Level, share: ByteShare, callbacks: FilterCallbacks, isRequest: boolean) {
    this.#share = share;
    this.#stats = isRequest ? level.request : level.response;
    this.#context = level.context;
    this.#callbacks = callbacks;
    this.#isRequest = isRequest;
  }

  begin(): void {
    this.#stats.enabled.add(1);
  }

  onData({ bytes, isEnd }: BodyData): FilterStatus {
    const size = bytes.length;
    const nowMs = this.#context.clock.monotonicMs();
    if (this.#startedMs === NOT_STARTED) {
      this.#startedMs = nowMs;
      this.#stats.pending.add(1);
    }
    this.#stats.incoming.set(size);
    this.#stats.incomingTotal.add(size);
    this.#come += size;
    if (isEnd) this.#hasCome = true;
    if (!this.#isWaiting && this.#passesAtOnce(size)) {
      this.#count(size);
      this.#endIfComplete();
      return 'continue';
    }
    if (!this.#isWaiting) {
      this.#stats.enforced.add(1);
      this.#waitsSinceMs = nowMs;
      this.#share.join(this);
    }
    return 'stop-and-pause';
  }

  onTrailers(): FilterStatus {
    this.#hasCome = true;
    if (this.#isWaiting) return 'stop-and-pause';
    this.#endIfComplete();
    return 'continue';
  }

  wanted(): number {
    return Math.min(this.#release(0), this.#sliceRest());
  }

  letPass(bytes: number): boolean {
    const come = this.#come;
    this.#had += bytes;
    const held = this.#release(bytes);
    // More may have come, now that there is room.
    const isDone = held === 0 && come === this.#come;
    // Framing has been counted as well.
    this.#count(isDone ? come - this.#gone : Math.min(bytes, come - this.#gone));
    if (!isDone || this.#isOver) return !this.#isOver;
    this.heldMs += this.#context.clock.monotonicMs() - this.#waitsSinceMs;
    this.#waitsSinceMs = NOT_STARTED;
    this.#endIfComplete();
    if (this.#isRequest) this.#callbacks.continueDecoding();
    else this.#callbacks.continueEncoding();
    return this.#isWaiting;
  }

  onDestroy(): void {
    this.#share.leave(this);
    this.#end();
  }

  /** Its last bytes go on. */
  protected onEnd(): void {}

  get #isWaiting(): boolean {
    return this.#waitsSinceMs !== NOT_STARTED;
  }

  #passesAtOnce(size: number): boolean {
    if (size === 0) return true;
    if (size > this.#sliceRest() || !this.#share.takeAtOnce(size)) return false;
    this.#had += size;
    return true;
  }

  /** What it may still have by now, however much there is: with each fill a slice. Only who waits may have those of former ones. */
  #sliceRest(): number {
    const fill = this.#share.fillNow();
    if (fill !== this.#fill && !this.#isWaiting) {
      this.#fill = fill;
      this.#had = 0;
    }
    return (fill - this.#fill + 1) * this.#share.sliceBytes - this.#had;
  }

  #release(bytes: number): number {
    return this.#isRequest ? this.#callbacks.releaseRequest(bytes) : this.#callbacks.releaseResponse(bytes);
  }

  #count(bytes: number): void {
    this.#gone += bytes;
    this.#stats.allowed.set(bytes);
    this.#stats.allowedTotal.add(bytes);
  }

  #endIfComplete(): void {
    if (!this.#hasCome || this.#isOver || this.#startedMs === NOT_STARTED) return;
    this.totalMs = this.#context.clock.monotonicMs() - this.#startedMs;
    this.#stats.duration.record(this.totalMs);
    this.#end();
    this.onEnd();
  }

  #end(): void {
    if (!this.#isOver && this.#startedMs !== NOT_STARTED) this.#stats.pending.add(-1);
    this.#isOver = true;
  }
}

/** The body of a response whose trailers tell of both. */
class ToldBody extends LimitedBody {
  trailers: Trailers | null = null;
  readonly #names: BandwidthTrailers;
  readonly #request: LimitedBody | null;

  constructor(
    level: Level,
    share: ByteShare,
    callbacks: FilterCallbacks,
    names: BandwidthTrailers,
    request: LimitedBody | null,
  ) {
    super(level, share, callbacks, false);
    this.#names = names;
    this.#request = request;
  }

  protected override onEnd(): void {
    const { requestMs, responseMs, requestHeldMs, responseHeldMs } = this.#names;
    this.#tell(requestMs, this.#request?.totalMs);
    this.#tell(requestHeldMs, this.#request?.heldMs);
    this.#tell(responseMs, this.totalMs);
    this.#tell(responseHeldMs, this.heldMs);
  }

  #tell(name: string, ms = 0): void {
    const whole = Math.floor(ms);
    if (whole > 0) this.trailers?.set(name, String(whole));
  }
}

class RequestLimit implements HttpFilter {
  readonly #body: LimitedBody;

  constructor(body: LimitedBody) {
    this.#body = body;
  }

  decodeHeaders(): FilterStatus {
    this.#body.begin();
    return 'continue';
  }

  decodeData(data: BodyData): FilterStatus {
    return this.#body.onData(data);
  }

  decodeTrailers(): FilterStatus {
    return this.#body.onTrailers();
  }

  onDestroy(): void {
    this.#body.onDestroy();
  }
}

class ResponseLimit implements HttpFilter {
  readonly #body: LimitedBody;
  readonly #told: ToldBody | null;
  readonly #callbacks: FilterCallbacks;

  constructor(body: LimitedBody, callbacks: FilterCallbacks) {
    this.#body = body;
    this.#told = body instanceof ToldBody && !callbacks.awaitsTunnel ? body : null;
    this.#callbacks = callbacks;
  }

  encodeHeaders(_head: EditableHead, _status: number, isEnd: boolean): FilterStatus {
    // Its body is not among the data.
    if (this.#callbacks.isLocalReply) return 'continue';
    this.#body.begin();
    if (isEnd) this.#callbacks.leaveResponse();
    else if (this.#told === null) this.#callbacks.onlyReadResponse();
    return 'continue';
  }

  encodeData(data: BodyData): FilterStatus {
    if (this.#told !== null && data.isEnd) this.#told.trailers = data.addTrailers();
    return this.#body.onData(data);
  }

  encodeTrailers(trailers: Trailers): FilterStatus {
    if (this.#told !== null) this.#told.trailers = trailers;
    return this.#body.onTrailers();
  }

  onDestroy(): void {
    this.#body.onDestroy();
  }
}

class BothLimits extends ResponseLimit {
  readonly #request: LimitedBody;

  constructor(request: LimitedBody, response: LimitedBody, callbacks: FilterCallbacks) {
    super(response, callbacks);
    this.#request = request;
  }

  decodeHeaders(): FilterStatus {
    this.#request.begin();
    return 'continue';
  }

  decodeData(data: BodyData): FilterStatus {
    return this.#request.onData(data);
  }

  decodeTrailers(): FilterStatus {
    return this.#request.onTrailers();
  }

  override onDestroy(): void {
    this.#request.onDestroy();
    super.onDestroy();
  }
}

function filterOf(level: Level, share: ByteShare, callbacks: FilterCallbacks): HttpFilter {
  const { limitsRequests, limitsResponses, trailers } = level.settings;
  const request = limitsRequests ? new LimitedBody(level, share, callbacks, true) : null;
  if (!limitsResponses) return request === null ? NOTHING : new RequestLimit(request);
  const response =
    trailers === null
      ? new LimitedBody(level, share, callbacks, false)
      : new ToldBody(level, share, callbacks, trailers, request);
  return request === null ? new ResponseLimit(response, callbacks) : new BothLimits(request, response, callbacks);
}

export const BANDWIDTH_LIMIT_FILTER: HttpFilterKind = {
  requestBody: 'reads',
  encodes: true,
  // Where trailers are to tell of it; others are read.
  responseBody: 'edits',
  compileForRoute: (settings, context) => new Level(settings as BandwidthLimitSettings, context),
  compile(settings, context) {
    const own = new Level(settings as BandwidthLimitSettings, context);
    return (callbacks) => {
      const [level = own] = callbacks.routeSettings as readonly Level[];
      const { share } = level;
      return share === null || !level.isEnabled ? NOTHING : filterOf(level, share, callbacks);
    };
  },
};
