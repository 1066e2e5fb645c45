// Answers requests with responses that came before (RFC 9111, as a shared cache). Worker thread; step 3 of the request flow. Each worker has
// responses of its own, and hears from the others what has changed.
//
//   decodeHeaders ──fresh──► a reply of what is kept
//                 ──stale, and it can be asked about──► upstream, with conditions ──304──► what is kept, refreshed
//                                                                                 ──it fails──► what is kept, where that may be
//                 ──stale, and somebody asks already──► a reply of what is kept, where that may be
//                 ──else──► upstream ──may be kept──► collected while it passes

import { compileStringMatch } from '../../../base/string-match.ts';
import type {
  BodyData,
  EditableHead,
  FilterCallbacks,
  FilterContext,
  FilterCounter,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
  LocalReply,
} from '../../../data-plane/index.ts';
import { Method, type RequestHead } from '../../../wasm/http1.ts';
import { type Answer, answerOf, type Conditions } from './answer.ts';
import type { CacheControl } from './cache-control.ts';
import { compileKey, type MakeKey } from './cache-key.ts';
import { CollectedBody, CollectingBudget } from './collected-body.ts';
import { datesOf, freshnessFor, stalenessFor } from './freshness.ts';
import type { CacheCounters, CacheSettings } from './settings.ts';
import { ResponseStore, type StoreLimits } from './store.ts';
import {
  isForAll,
  keptFields,
  mayStore,
  refreshed,
  requestControl,
  type StoredResponse,
  valueIn,
  variedBy,
} from './stored-response.ts';

/** Of a worker and a connection manager. */
const LIMITS: StoreLimits = { maxBytes: 32 * 1024 * 1024, maxEntries: 10_000, maxVariants: 32 };
const NOT_CACHED: LocalReply = { status: 504, body: '', flag: '-', details: 'cache.only_if_cached' };
/** They leave things as they are (RFC 9110 section 9.2.1). */
const SAFE: ReadonlySet<number> = new Set([Method.GET, Method.HEAD, Method.OPTIONS, Method.TRACE]);
const CONDITIONS = [
  'if-none-match',
  'if-modified-since',
  'if-match',
  'if-unmodified-since',
  'if-range',
  'range',
] as const;
/** Only the upstream can judge by these. */
const FOR_THE_UPSTREAM = ['if-match', 'if-unmodified-since', 'if-range'] as const;
const NO_CONDITIONS: Conditions = { ifNoneMatch: undefined, ifModifiedSince: undefined, range: undefined };
const NOT_MODIFIED = 304;
/** Of what caches tell each other: keys of what has changed. */
const CHANGED = 'cache.changed';
/** Statuses of upstreams that have failed (RFC 5861 section 4). */
const ERRORS: ReadonlySet<number> = new Set([500, 502, 503, 504]);

/** What all requests of a connection manager share. */
class Cache {
  readonly context: FilterContext;
  readonly settings: CacheSettings;
  readonly store: ResponseStore;
  readonly collecting = new CollectingBudget(LIMITS.maxBytes);
  readonly keyOf: MakeKey;
  /** Stale ones that some request asks the upstream about. */
  readonly revalidating = new Set<StoredResponse>();
  readonly counters: Readonly<Record<keyof CacheCounters, FilterCounter>>;
  /** Requests whose responses may be kept, by their keys. */
  readonly #underWay = new Map<string, Set<CacheFilter>>();
  readonly #variesBy: readonly ((name: string) => boolean)[];

  constructor(settings: CacheSettings, context: FilterContext) {
    this.settings = settings;
    this.context = context;
    const names = Object.entries(settings.counters) as [keyof CacheCounters, string][];
    this.counters = Object.fromEntries(names.map(([key, name]) => [key, context.counter(name)])) as Cache['counters'];
    this.store = new ResponseStore(LIMITS, () => this.counters.evicted.add(1));
    this.keyOf = compileKey(settings.key);
    this.#variesBy = settings.allowedVary.map(compileStringMatch);
    context.onTold(CHANGED, (keys) => {
      if (keys === null) this.#forget(this.store.keys(), this.#underWay.keys());
      else this.#forget(keys, keys);
    });
  }

  /** A request has changed what stands behind this key: what is kept of it is no longer so, here and in the other workers. */
  changed(key: string): void {
    this.context.tellAll(CHANGED, key);
  }

  begin(key: string, filter: CacheFilter): void {
    const filters = this.#underWay.get(key) ?? new Set();
    this.#underWay.set(key, filters);
    filters.add(filter);
  }

  end(key: string, filter: CacheFilter): void {
    const filters = this.#underWay.get(key);
    if (filters?.delete(filter) && filters.size === 0) this.#underWay.delete(key);
  }

  /** What is kept, and what is on its way: it may have left the upstream before the change. */
  #forget(kept: Iterable<string>, underWay: Iterable<string>): void {
    for (const key of [...kept]) this.counters.invalidated.add(this.store.remove(key));
    for (const key of [...underWay]) for (const filter of this.#underWay.get(key) ?? []) filter.forget();
  }

  /** Responses may differ by this header, named in lower case. */
  mayVaryBy(name: string): boolean {
    return this.#variesBy.some((matches) => matches(name));
  }

  /** What a request says of the headers that responses may vary by. */
  varyOf(head: RequestHead): ReadonlyMap<string, string> {
    const values = new Map<string, string>();
    if (this.#variesBy.length === 0) return values;
    for (const [name, value] of head.entries()) {
      if (!this.mayVaryBy(name)) continue;
      const before = values.get(name);
      values.set(name, before === undefined ? value.trim() : `${before},${value.trim()}`);
    }
    return values;
  }
}

/** A response on its way that is to be kept. */
interface Collected {
  readonly response: Omit<StoredResponse, 'body'>;
  readonly body: CollectedBody;
}

class CacheFilter implements HttpFilter {
  readonly #cache: Cache;
  readonly #callbacks: FilterCallbacks;
  /** Empty for a request that the cache has nothing to do with. */
  #key = '';
  #isSafe = true;
  /** Its response may be kept. */
  #mayKeep = false;
  /** Who asked before has made something else of it. */
  #isOutdated = false;
  #isAuthorized = false;
  #vary: ReadonlyMap<string, string> = new Map();
  /** Wall time, in seconds. */
  #requestedAt = 0;
  #conditions: Conditions = NO_CONDITIONS;
  /** What the upstream has been asked about; null for nothing. */
  #validating: StoredResponse | null = null;
  /** What other requests get meanwhile; it counts among `revalidating`. Null for nothing. */
  #asking: StoredResponse | null = null;
  /** What is given where the upstream fails; null for what the upstream says. */
  #fallback: StoredResponse | null = null;
  /** What is given in place of an upstream's response; null for nothing. */
  #answer: Answer | null = null;
  #collected: Collected | null = null;

  constructor(cache: Cache, callbacks: FilterCallbacks) {
    this.#cache = cache;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead, isEnd: boolean): FilterStatus {
    const { counters, settings, keyOf } = this.#cache;
    // What follows a tunnel's head is no HTTP; a body that a GET brings has a meaning that no key tells of.
    if (this.#callbacks.awaitsTunnel || head.methodId === Method.CONNECT || this.#callbacks.isGrpc) return 'continue';
    this.#isSafe = SAFE.has(head.methodId);
    const isGet = head.methodId === Method.GET;
    if (this.#isSafe && ((!isGet && head.methodId !== Method.HEAD) || !isEnd)) return this.#passBy();
    this.#key = keyOf(head);
    if (!this.#isSafe) return 'continue';
    const said = requestControl(head.headerByName('cache-control'), head.headerByName('pragma'));
    const control = settings.ignoresRequestDirectives ? null : said;
    if (control?.noStore === true) return this.#passBy();
    for (const name of FOR_THE_UPSTREAM) if (head.hasField(name)) return this.#passBy();
    this.#isAuthorized = head.hasField('authorization');
    this.#mayKeep = isGet;
    this.#vary = this.#cache.varyOf(head);
    this.#requestedAt = this.#wallSeconds;
    this.#conditions = {
      ifNoneMatch: head.headerByName('if-none-match'),
      ifModifiedSince: head.headerByName('if-modified-since'),
      range: isGet ? head.headerByName('range') : undefined,
    };
    const stored = this.#find();
    if (stored === undefined) {
      counters.miss.add(1);
      if (isGet) this.#cache.begin(this.#key, this);
      return this.#goOn(control);
    }
    const age = this.#ageOf(stored);
    if (freshnessFor(stored.dates, age, control) === 'fresh') {
      counters.hit.add(1);
      return this.#answerWith(answerOf(stored, this.#conditions, age));
    }
    if (control?.onlyIfCached === true) {
      counters.miss.add(1);
      return this.#goOn(control);
    }
    if (isGet) this.#cache.begin(this.#key, this);
    const { whileRevalidating, ifError } = stalenessFor(stored.dates, age, control);
    if (whileRevalidating) {
      if (this.#cache.revalidating.has(stored)) {
        counters.staleWhileRevalidating.add(1);
        return this.#answerWith(answerOf(stored, this.#conditions, age));
      }
      this.#asking = stored;
      this.#cache.revalidating.add(stored);
    }
    if (ifError) this.#fallback = stored;
    if (stored.etag !== undefined || stored.lastModified !== undefined) {
      this.#validate(head, stored);
      return 'continue';
    }
    counters.miss.add(1);
    return 'continue';
  }

  encodeHeaders(head: EditableHead, status: number, isEnd: boolean): FilterStatus {
    if (this.#answer !== null) {
      fill(head, this.#answer, true);
      return 'continue';
    }
    if (this.#fallback !== null && ERRORS.has(status)) return this.#answerInstead(this.#fallback);
    if (!this.#callbacks.isLocalReply) this.#onResponse(head, status, isEnd);
    return 'continue';
  }

  encodeData({ bytes, isEnd }: BodyData): FilterStatus {
    const collected = this.#collected;
    if (collected === null) return 'continue';
    if (!collected.body.add(bytes)) this.#dropCollected();
    else if (isEnd) this.#keep(collected);
    return 'continue';
  }

  encodeTrailers(): FilterStatus {
    // They would have to be kept, too.
    this.#dropCollected();
    return 'continue';
  }

  /** What it asks for has changed meanwhile. */
  forget(): void {
    this.#isOutdated = true;
    this.#dropCollected();
  }

  onDestroy(): void {
    this.#dropCollected();
    if (this.#key !== '') this.#cache.end(this.#key, this);
    this.#endAsking();
  }

  get #wallSeconds(): number {
    return this.#cache.context.clock.wallMs() / 1000;
  }

  get #monotonicSeconds(): number {
    return this.#cache.context.clock.monotonicMs() / 1000;
  }

  #passBy(): FilterStatus {
    this.#cache.counters.uncacheable.add(1);
    this.#key = '';
    return 'continue';
  }

  #goOn(control: CacheControl | null): FilterStatus {
    if (control?.onlyIfCached !== true) return 'continue';
    this.#callbacks.reply(NOT_CACHED);
    return 'stop';
  }

  #find(): StoredResponse | undefined {
    const { store } = this.#cache;
    const stored = store.find(this.#key, this.#callbacks.routeCluster, (name) => this.#vary.get(name));
    return stored !== undefined && this.#isAuthorized && !isForAll(stored.dates.control) ? undefined : stored;
  }

  #ageOf({ dates, receivedMonotonic }: StoredResponse): number {
    return dates.initialAge + this.#monotonicSeconds - receivedMonotonic;
  }

  #answerWith(answer: Answer): FilterStatus {
    this.#answer = answer;
    const { status, body: bytes } = answer;
    const details = 'cache.response_from_cache_filter';
    this.#callbacks.reply({ status, body: '', bytes, flag: 'RFCF', details, isWhole: true });
    return 'stop';
  }

  /** In place of an upstream's failure, or of a reply of the proxy that tells of one. */
  #answerInstead(stored: StoredResponse): FilterStatus {
    const { counters } = this.#cache;
    counters.staleIfError.add(1);
    if (this.#validating !== null) counters.failedValidation.add(1);
    const answer = answerOf(stored, this.#conditions, this.#ageOf(stored));
    const { status, body: bytes } = answer;
    this.#callbacks.reply({
      status,
      body: '',
      bytes,
      flag: 'RFCF',
      details: 'cache.response_from_cache_filter',
      isWhole: true,
      editHead: (head) => fill(head, answer, true),
    });
    return 'stop';
  }

  /** What is kept is as new as it gets by this request: the next one that finds it stale asks. */
  #endAsking(): void {
    if (this.#asking === null) return;
    this.#cache.revalidating.delete(this.#asking);
    this.#asking = null;
  }

  /** Asks the upstream whether what is kept still holds, in place of what the client wants to know. */
  #validate(head: RequestHead, stored: StoredResponse): void {
    this.#validating = stored;
    for (const name of CONDITIONS) head.removeField(name);
    if (stored.etag !== undefined) head.append('if-none-match', stored.etag);
    if (stored.lastModified !== undefined) head.append('if-modified-since', stored.lastModified);
  }

  #onResponse(head: EditableHead, status: number, isEnd: boolean): void {
    const { counters } = this.#cache;
    const validating = this.#validating;
    if (validating !== null && status === NOT_MODIFIED) {
      counters.validated.add(1);
      this.#answerValidated(head, validating);
      return;
    }
    if (validating !== null) counters.failedValidation.add(1);
    // What has changed something has changed what is kept of it; an error has not.
    if (!this.#isSafe && status >= 200 && status < 400) this.#cache.changed(this.#key);
    this.#collected = this.#mayKeep && !this.#isOutdated && this.#key !== '' ? this.#collect(head, status) : null;
    if (this.#collected === null) this.#callbacks.leaveResponse();
    else {
      this.#callbacks.onlyReadResponse();
      if (isEnd) this.#keep(this.#collected);
    }
  }

  #answerValidated(head: EditableHead, validating: StoredResponse): void {
    const moments = this.#moments();
    const stored = refreshed(validating, head.entries(), moments);
    // Only if nobody has changed it meanwhile.
    if (
      !this.#isOutdated &&
      this.#find() === validating &&
      mayStore(stored.status, stored.fields, stored.dates, this.#isAuthorized)
    ) {
      this.#cache.store.put(this.#key, stored);
    }
    const answer = answerOf(stored, this.#conditions, stored.dates.initialAge);
    this.#callbacks.addFlag('RFCF');
    if (answer.status === NOT_MODIFIED) {
      this.#callbacks.leaveResponse();
      fill(head, answer, false);
      return;
    }
    const whole = this.#callbacks.heldResponseHead(answer.status)!;
    fill(whole, answer, false);
    const hasBody = answer.body.length > 0 && this.#mayKeep;
    if (hasBody) {
      this.#callbacks.addResponseData(answer.body);
      return;
    }
    this.#callbacks.leaveResponse();
    whole.append('content-length', String(answer.body.length));
  }

  #moments() {
    return {
      requestedAt: this.#requestedAt,
      receivedAt: this.#wallSeconds,
      receivedMonotonic: this.#monotonicSeconds,
    };
  }

  /** @returns null for what may not be kept. */
  #collect(head: EditableHead, status: number): Collected | null {
    const { settings } = this.#cache;
    const entries = head.entries();
    const { requestedAt, receivedAt, receivedMonotonic } = this.#moments();
    const length = valueIn(entries, 'content-length');
    if (length !== undefined && Number(length) > settings.maxBodyBytes) return null;
    const dates = datesOf((name) => valueIn(entries, name), requestedAt, receivedAt);
    if (!mayStore(status, entries, dates, this.#isAuthorized)) return null;
    const varied = variedBy(entries);
    if (varied === null || !varied.every((name) => this.#cache.mayVaryBy(name))) return null;
    const fields = keptFields(entries);
    const response = {
      status,
      fields: head.hasField('date')
        ? fields
        : [...fields, ['date', new Date(receivedAt * 1000).toUTCString()] as const],
      dates,
      receivedMonotonic,
      etag: valueIn(entries, 'etag'),
      lastModified: valueIn(entries, 'last-modified'),
      cluster: this.#callbacks.routeCluster,
      vary: varied.map((name) => [name, this.#vary.get(name)] as const),
    };
    return { response, body: new CollectedBody(this.#cache.collecting, settings.maxBodyBytes) };
  }

  #keep({ response, body }: Collected): void {
    this.#collected = null;
    const { counters, store } = this.#cache;
    if (store.put(this.#key, { ...response, body: body.take() })) counters.inserted.add(1);
    this.#endAsking();
  }

  #dropCollected(): void {
    this.#collected?.body.drop();
    this.#collected = null;
  }
}

/** Makes a head that of an answer. @param keepsLength it says how long the answer's body is. */
function fill(head: EditableHead, { fields }: Answer, keepsLength: boolean): void {
  for (const name of new Set(head.entries().map(([each]) => each))) {
    if (!keepsLength || name !== 'content-length') head.removeField(name);
  }
  for (const [name, value] of fields) head.append(name, value);
}

export const CACHE_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'edits',
  compile(settings, context) {
    const cache = new Cache(settings as CacheSettings, context);
    return (callbacks) => new CacheFilter(cache, callbacks);
  },
};
