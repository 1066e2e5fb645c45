// Limits how many requests go on: each takes a token out of a bucket that all workers share, and is refused when there is none.
// Worker thread; step 3 of the request flow.
//
//   enabled? ──► descriptors of the request ──► their buckets, scarcest first ──► the bucket of all ──► enforced? ──► 429

import { KeyedTokenBuckets, keyedBucketState } from '../../../base/keyed-token-buckets.ts';
import { bucketState, TokenBucket } from '../../../base/token-bucket.ts';
import {
  compileHeaderEdits,
  type EditableHead,
  type FactsSource,
  type FilterCallbacks,
  type FilterContext,
  type FilterCounter,
  type FilterStatus,
  type FormatFacts,
  type HeaderEditor,
  type HttpFilter,
  type HttpFilterKind,
  type LocalReply,
  replaceField,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { type Descriptor, DescriptorRules, descriptorKey } from '../rate-limit-descriptors.ts';
import type { LocalRateLimitSettings, OpenDescriptorSettings } from './settings.ts';

const RESOURCE_EXHAUSTED = 8;
const NEVER = (): boolean => false;
const NONE_MATCHED: readonly MatchedDescriptor[] = [];

/** The buckets of one level, for all requests or for those of one connection. */
interface Buckets {
  readonly ofAll: TokenBucket | null;
  readonly byDescriptor: ReadonlyMap<string, FoundBucket>;
  readonly open: readonly OpenBuckets[];
}

interface FoundBucket {
  readonly bucket: TokenBucket;
  /** What is beyond it goes on. */
  readonly isShadow: boolean;
}

interface MatchedDescriptor extends FoundBucket {
  readonly hits: number;
}

/** Of a descriptor that leaves values open. */
class OpenBuckets {
  readonly #settings: OpenDescriptorSettings;
  readonly #buckets: KeyedTokenBuckets;

  constructor(settings: OpenDescriptorSettings) {
    this.#settings = settings;
    this.#buckets = new KeyedTokenBuckets(settings.buckets);
  }

  passes({ entries }: Descriptor): boolean {
    const { entries: own } = this.#settings;
    if (entries.length !== own.length) return false;
    return own.every(([key, value], at) => entries[at]![0] === key && (value === '' || entries[at]![1] === value));
  }

  find(key: string, nowMs: number): FoundBucket {
    return { bucket: this.#buckets.bucketOf(key, nowMs), isShadow: this.#settings.isShadow };
  }
}

/** What a level says, ready to be asked. */
class Level {
  readonly isEnabled: () => boolean;
  readonly isEnforced: () => boolean;
  readonly enabled: FilterCounter;
  readonly enforced: FilterCounter;
  readonly limited: FilterCounter;
  readonly ok: FilterCounter;
  readonly refusal: LocalReply;
  readonly responseEditor: HeaderEditor | null;
  readonly requestEditor: HeaderEditor | null;
  readonly tellsLimits: boolean;
  readonly context: FilterContext;
  readonly #settings: LocalRateLimitSettings;
  readonly #rules: DescriptorRules;
  /** Of the settings' own limits, which have no stages. */
  readonly #ownRules: DescriptorRules;
  readonly #shared: Buckets;
  readonly #byConnection = new WeakMap<object, Buckets>();

  constructor(settings: LocalRateLimitSettings, context: FilterContext) {
    const { counters, enabled, enforced, status, isResourceExhausted } = settings;
    this.context = context;
    this.#settings = settings;
    this.#rules = new DescriptorRules(context, settings.stage);
    this.#ownRules = new DescriptorRules(context, null);
    this.isEnabled = enabled === null ? NEVER : context.share(enabled);
    this.isEnforced = enforced === null ? NEVER : context.share(enforced);
    this.enabled = context.counter(counters.enabled);
    this.enforced = context.counter(counters.enforced);
    this.limited = context.counter(counters.limited);
    this.ok = context.counter(counters.ok);
    this.refusal = {
      status,
      body: 'local_rate_limited',
      flag: 'RL',
      details: 'local_rate_limited',
      ...(isResourceExhausted ? { grpcStatus: RESOURCE_EXHAUSTED } : {}),
    };
    this.responseEditor = compileHeaderEdits(settings.responseEdits);
    this.requestEditor = compileHeaderEdits(settings.requestEdits);
    this.tellsLimits = settings.tellsLimits;
    this.#shared = bucketsOf(settings);
  }

  bucketsFor({ connection }: FilterCallbacks): Buckets {
    if (!this.#settings.isPerConnection) return this.#shared;
    let own = this.#byConnection.get(connection);
    if (own === undefined) {
      own = bucketsOf(withOwnState(this.#settings, this.context.sharedNowMs()));
      this.#byConnection.set(connection, own);
    }
    return own;
  }

  /** The buckets that stand for what the request is, the scarcest first. */
  matched(
    buckets: Buckets,
    head: RequestHead,
    callbacks: FilterCallbacks,
    nowMs: number,
  ): readonly MatchedDescriptor[] {
    if (buckets.byDescriptor.size === 0 && buckets.open.length === 0) return NONE_MATCHED;
    return this.#descriptorsOf(head, callbacks)
      .flatMap((descriptor) => {
        const found = findBucket(buckets, descriptor, nowMs);
        const count = descriptor.hits.of(callbacks);
        return found === undefined || count === undefined ? [] : { ...found, hits: count ?? 1 };
      })
      .sort((a, b) => a.bucket.tokensPerMs - b.bucket.tokensPerMs);
  }

  get alwaysTakesDefault(): boolean {
    return this.#settings.alwaysTakesDefault;
  }

  #descriptorsOf(head: RequestHead, callbacks: FilterCallbacks): Descriptor[] {
    const { rateLimits, hostLimits } = this.#settings;
    const found: Descriptor[] = [];
    const limits = callbacks.rateLimits;
    if (rateLimits.length > 0) this.#ownRules.describe(rateLimits, false, head, callbacks, found);
    else if (limits !== null) {
      const { ofRoute, ofHost, includesHost } = limits;
      this.#rules.describe(ofRoute, false, head, callbacks, found);
      const readsHost = includesHost || hostLimits === 'include' || (hostLimits === 'override' && ofRoute.length === 0);
      if (readsHost) this.#rules.describe(ofHost, false, head, callbacks, found);
    }
    return found;
  }
}

function bucketsOf({ bucket, descriptors, openDescriptors }: LocalRateLimitSettings): Buckets {
  return {
    ofAll: bucket && new TokenBucket(bucket),
    byDescriptor: new Map(
      descriptors.map(({ entries, isShadow, bucket: own }) => [
        descriptorKey(entries),
        { bucket: new TokenBucket(own), isShadow },
      ]),
    ),
    open: openDescriptors.map((descriptor) => new OpenBuckets(descriptor)),
  };
}

/** For a connection that has all of it to itself. */
function withOwnState(settings: LocalRateLimitSettings, nowMs: number): LocalRateLimitSettings {
  const { bucket, descriptors, openDescriptors } = settings;
  const full = (maxTokens: number): SharedArrayBuffer => bucketState(maxTokens, nowMs);
  return {
    ...settings,
    bucket: bucket && { ...bucket, state: full(bucket.maxTokens) },
    descriptors: descriptors.map((descriptor) => {
      const { bucket: own } = descriptor;
      return { ...descriptor, bucket: { ...own, state: full(own.maxTokens) } };
    }),
    openDescriptors: openDescriptors.map((descriptor) => {
      const { buckets } = descriptor;
      return { ...descriptor, buckets: { ...buckets, state: keyedBucketState(buckets.maxKeys, nowMs) } };
    }),
  };
}

/** One that names all values goes before those that leave some open. */
function findBucket({ byDescriptor, open }: Buckets, descriptor: Descriptor, nowMs: number): FoundBucket | undefined {
  const key = descriptorKey(descriptor.entries);
  return byDescriptor.get(key) ?? open.find((buckets) => buckets.passes(descriptor))?.find(key, nowMs);
}

class LocalRateLimitFilter implements HttpFilter, FactsSource {
  protected level: Level;
  readonly #own: Level;
  readonly #callbacks: FilterCallbacks;
  /** Whose tokens the response tells of; null for none. */
  protected told: TokenBucket | null = null;
  #response: EditableHead | null = null;

  /** @param level of the route as it is before all filters. */
  constructor(own: Level, level: Level, callbacks: FilterCallbacks) {
    this.#own = own;
    this.level = level;
    this.#callbacks = callbacks;
  }

  get facts(): FormatFacts {
    return this.#callbacks.facts(this.#response);
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    // A filter before this one may have had another route chosen.
    const level = levelFor(this.#callbacks, this.#own);
    this.level = level;
    if (!level.isEnabled()) return 'continue';
    level.enabled.add(1);
    const taken = this.#take(level, head);
    if (taken === 'enough') {
      level.ok.add(1);
      return 'continue';
    }
    level.limited.add(1);
    if (taken === 'short in shadow' || !level.isEnforced()) {
      level.requestEditor?.apply(head, this);
      return 'continue';
    }
    level.enforced.add(1);
    this.#callbacks.reply({ ...level.refusal, editHead: (reply) => this.#editRefusal(reply) });
    return 'stop';
  }

  #editRefusal(head: EditableHead): void {
    const { context, responseEditor } = this.level;
    replaceField(head, context.headerNames.rateLimited, 'true');
    this.#response = head;
    responseEditor?.apply(head, this);
    this.#response = null;
  }

  #take(level: Level, head: RequestHead): 'enough' | 'short' | 'short in shadow' {
    const nowMs = level.context.sharedNowMs();
    const buckets = level.bucketsFor(this.#callbacks);
    const matched = level.matched(buckets, head, this.#callbacks, nowMs);
    this.told = matched[0]?.bucket ?? buckets.ofAll;
    let inShadow = false;
    for (const { bucket, hits, isShadow } of matched) {
      if (bucket.take(hits, nowMs)) continue;
      if (!isShadow) return 'short';
      inShadow = true;
    }
    const takesDefault = matched.length === 0 || level.alwaysTakesDefault;
    if (takesDefault && buckets.ofAll?.take(1, nowMs) === false) return 'short';
    return inShadow ? 'short in shadow' : 'enough';
  }
}

/** Where responses say how much is left: only these look at them. */
class TellingFilter extends LocalRateLimitFilter {
  encodeHeaders(head: EditableHead): FilterStatus {
    const { told: bucket, level } = this;
    if (bucket === null) return 'continue';
    const nowMs = level.context.sharedNowMs();
    replaceField(head, 'x-ratelimit-limit', String(bucket.maxTokens));
    replaceField(head, 'x-ratelimit-remaining', String(bucket.remaining(nowMs)));
    replaceField(head, 'x-ratelimit-reset', String(Math.ceil(bucket.msToFill(nowMs) / 1000)));
    return 'continue';
  }
}

function levelFor({ routeSettings }: FilterCallbacks, own: Level): Level {
  return (routeSettings as readonly Level[])[0] ?? own;
}

export const LOCAL_RATE_LIMIT_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'none',
  compileForRoute: (settings, context) => new Level(settings as LocalRateLimitSettings, context),
  compile(settings, context) {
    const own = new Level(settings as LocalRateLimitSettings, context);
    return (callbacks) => {
      const level = levelFor(callbacks, own);
      return level.tellsLimits
        ? new TellingFilter(own, level, callbacks)
        : new LocalRateLimitFilter(own, level, callbacks);
    };
  },
};
