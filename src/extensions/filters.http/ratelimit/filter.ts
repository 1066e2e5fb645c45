// Rate limits of a service: it is told what a request is called, and says whether that goes beyond a limit. Worker thread;
// step 3 of the request flow.
//
//   head ──► descriptors ──none──► goes on
//                 │
//                 ▼
//              service ──OK──────────► goes on, with what the service adds
//                 ├──OVER_LIMIT──────► refused, where that is enforced
//                 └──no answer───────► goes on, or is refused (failure_mode_deny)
//
//   end of the request ──► descriptors that count then ──► service, whose answer changes nothing

import {
  type CallAnswer,
  type CallReceiver,
  compileHeaderEdits,
  type EditableHead,
  type FactsSource,
  type FilterCallbacks,
  type FilterContext,
  type FilterStatus,
  type FormatFacts,
  type HeaderEditor,
  type HttpFilter,
  type HttpFilterKind,
  type LocalReply,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { editFields, type FieldEdit } from '../field-edits.ts';
import { unaryAnswer, unaryCall } from '../grpc/unary-call.ts';
import { type Descriptor, DescriptorRules } from '../rate-limit-descriptors.ts';
import { type Asked, decodeLimitResponse, encodeLimitRequest, type LimitAnswer, limitFields } from './service.ts';
import type { RateLimitFilterSettings, RateLimitStatNames, RouteLimitSettings } from './settings.ts';

const METADATA_NAMESPACE = 'envoy.filters.http.ratelimit';
const RESOURCE_EXHAUSTED = 8;
/** Of an answer that comes when its request is over: nobody reads it. */
const LATE_ANSWER_BYTES = 65_536;
const LATE: CallReceiver = { onAnswer: () => undefined, onCallFailure: () => undefined };

/** What all requests of a connection manager share. */
class RateLimits {
  readonly settings: RateLimitFilterSettings;
  readonly context: FilterContext;
  readonly isEnabled: () => boolean;
  readonly isEnforced: () => boolean;
  readonly deniesFailure: () => boolean;
  readonly responseEditor: HeaderEditor | null;
  /** What each status of a refusal makes of the counts of a cluster. */
  readonly refusalCounts: readonly string[];
  readonly #path: string;
  readonly #rules: DescriptorRules;
  /** Of the filter's own limits and of levels of routes, which have no stages. */
  readonly #ownRules: DescriptorRules;
  readonly #internalNames: readonly string[];

  constructor(settings: RateLimitFilterSettings, context: FilterContext) {
    this.settings = settings;
    this.context = context;
    this.isEnabled = context.share(settings.enabled);
    this.isEnforced = context.share(settings.enforced);
    this.deniesFailure = context.share(settings.deniesFailure);
    this.responseEditor = compileHeaderEdits(settings.responseEdits);
    const { status } = settings;
    this.refusalCounts = ['completed', `${Math.trunc(status / 100)}xx`, String(status)].map(
      (name) => `upstream_rq_${name}`,
    );
    this.#path = `/envoy.service.ratelimit.${settings.service.generation}.RateLimitService/ShouldRateLimit`;
    this.#rules = new DescriptorRules(context, settings.stage);
    this.#ownRules = new DescriptorRules(context, null);
    this.#internalNames = context.headerNames.spellings('internal');
  }

  /** The limits are for requests that come from where this one comes from. */
  isMeant(head: RequestHead): boolean {
    const { requests } = this.settings;
    if (requests === 'both') return true;
    const isInternal = this.#internalNames.some((name) => head.headerByName(name) === 'true');
    return isInternal === (requests === 'internal');
  }

  /** @param isAtEnd those that count when the request is over, else the others. */
  describe(isAtEnd: boolean, head: RequestHead, callbacks: FilterCallbacks): Descriptor[] {
    const [level] = callbacks.routeSettings as readonly RouteLimitSettings[];
    const found: Descriptor[] = [];
    const own = level !== undefined && level.rateLimits.length > 0 ? level.rateLimits : this.settings.rateLimits;
    const limits = callbacks.rateLimits;
    if (own.length > 0) this.#ownRules.describe(own, isAtEnd, head, callbacks, found);
    else if (limits !== null) {
      const { ofRoute, ofHost, includesHost } = limits;
      const hostLimits = level?.hostLimits ?? 'override';
      this.#rules.describe(ofRoute, isAtEnd, head, callbacks, found);
      const readsHost = includesHost || hostLimits === 'include' || (hostLimits === 'override' && ofRoute.length === 0);
      if (readsHost) this.#rules.describe(ofHost, isAtEnd, head, callbacks, found);
    }
    return found;
  }

  question(callbacks: FilterCallbacks, asked: readonly Asked[], maxAnswerBytes: number): ReturnType<typeof unaryCall> {
    const [level] = callbacks.routeSettings as readonly RouteLimitSettings[];
    const message = encodeLimitRequest(level?.domain || this.settings.domain, asked);
    return unaryCall(this.settings.service, this.#path, message, maxAnswerBytes);
  }
}

class RateLimitFilter implements HttpFilter, CallReceiver, FactsSource {
  readonly #limits: RateLimits;
  readonly #callbacks: FilterCallbacks;
  /** That the service has been asked about. */
  #asked: readonly Descriptor[] = [];
  /** Those that count when the request is over. */
  #atEnd: readonly Descriptor[] = [];
  /** Has not gone on. */
  #isHeld = false;
  #isAnswered = false;
  #isRefused = false;
  /** What the service and its limits say to the client. */
  #fields: readonly FieldEdit[] = [];
  #response: EditableHead | null = null;

  constructor(limits: RateLimits, callbacks: FilterCallbacks) {
    this.#limits = limits;
    this.#callbacks = callbacks;
  }

  get facts(): FormatFacts {
    return this.#callbacks.facts(this.#response);
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const limits = this.#limits;
    const callbacks = this.#callbacks;
    if (!callbacks.isForwarded || !limits.isEnabled() || !limits.isMeant(head)) return 'continue';
    this.#atEnd = limits.describe(true, head, callbacks);
    const [descriptors, asked] = counted(limits.describe(false, head, callbacks), callbacks);
    if (asked.length === 0) return 'continue';
    this.#asked = descriptors;
    this.#isHeld = true;
    callbacks.call(limits.question(callbacks, asked, callbacks.bufferLimitBytes), this);
    return this.#isHeld ? 'stop-and-pause' : 'continue';
  }

  encodeHeaders(head: EditableHead): FilterStatus {
    if (this.#callbacks.isLocalReply && this.#fields.some(({ name }) => name === 'content-type')) {
      head.removeField('content-type');
    }
    editFields(head, this.#fields);
    if (!this.#isRefused) return 'continue';
    this.#response = head;
    this.#limits.responseEditor?.apply(head, this);
    this.#response = null;
    return 'continue';
  }

  onDestroy(): void {
    // One that nobody has waited for to the end counts nowhere.
    if (this.#atEnd.length === 0 || (this.#isHeld && !this.#isAnswered)) return;
    const limits = this.#limits;
    const [, asked] = counted(this.#atEnd, this.#callbacks);
    if (asked.length === 0) return;
    limits.context.call(limits.question(this.#callbacks, asked, LATE_ANSWER_BYTES), LATE);
  }

  onAnswer(answer: CallAnswer): void {
    this.#isAnswered = true;
    const message = unaryAnswer(answer);
    let said: LimitAnswer | null = null;
    try {
      if (message !== null) said = decodeLimitResponse(message);
    } catch {
      // No message at all: the service has failed.
    }
    if (said === null) this.#fail();
    else this.#obey(said);
  }

  onCallFailure(): void {
    this.#isAnswered = true;
    this.#fail();
  }

  #obey(answer: LimitAnswer): void {
    const { settings, isEnforced, context } = this.#limits;
    if (answer.metadata !== null && Object.keys(answer.metadata).length > 0) {
      this.#callbacks.addMetadata(METADATA_NAMESPACE, answer.metadata);
    }
    const marks = answer.isOverLimit && settings.marksRefusals;
    this.#fields = [
      ...appended(answer.responseFields),
      ...(marks ? [{ name: context.headerNames.rateLimited, value: 'true', action: 'set' as const }] : []),
      ...appended(limitFields(this.#toldStatuses(answer))),
    ];
    this.#count(answer.isOverLimit ? 'overLimit' : 'ok');
    if (!answer.isOverLimit || !isEnforced()) {
      this.#goOn(answer.requestFields);
      return;
    }
    for (const name of this.#limits.refusalCounts) this.#callbacks.targetCluster?.counter(name).add(1);
    this.#isRefused = true;
    this.#callbacks.reply(refusal(settings, answer.body));
  }

  #fail(): void {
    const { settings, deniesFailure } = this.#limits;
    this.#count('error');
    if (!deniesFailure()) {
      this.#count('failureModeAllowed');
      this.#goOn([]);
      return;
    }
    const { statusOnError: status } = settings;
    this.#callbacks.reply({ status, body: '', flag: 'RLSE', details: 'rate_limiter_error' });
  }

  /** Of those descriptors whose limits the response tells; which is which can be known only if there is one for each. */
  #toldStatuses({ statuses }: LimitAnswer): LimitAnswer['statuses'] {
    const { tellsLimits } = this.#limits.settings;
    if (statuses.length !== this.#asked.length) return tellsLimits ? statuses : [];
    return statuses.filter((_, index) => this.#asked[index]!.tellsLimits ?? tellsLimits);
  }

  #goOn(fields: LimitAnswer['requestFields']): void {
    this.#isHeld = false;
    if (fields.length > 0) {
      editFields(this.#callbacks.heldRequestHead(), appended(fields));
      // The filters behind and the router read it as it is now.
      this.#callbacks.settleEditedHead();
    }
    this.#callbacks.continueDecoding();
  }

  #count(name: keyof RateLimitStatNames): void {
    this.#callbacks.targetCluster?.counter(this.#limits.settings.stats[name]).add(1);
  }
}

/** Those whose number of hits is known, and what the service is asked. */
function counted(
  descriptors: readonly Descriptor[],
  callbacks: FilterCallbacks,
): readonly [descriptors: readonly Descriptor[], asked: readonly Asked[]] {
  const known: Descriptor[] = [];
  const asked: Asked[] = [];
  for (const descriptor of descriptors) {
    const hits = descriptor.hits.of(callbacks);
    if (hits === undefined) continue;
    known.push(descriptor);
    asked.push({ entries: descriptor.entries, limit: descriptor.limit, hits });
  }
  return [known, asked];
}

function appended(fields: readonly (readonly [name: string, value: string])[]): FieldEdit[] {
  return fields.map(([name, value]) => ({ name, value, action: 'append' }));
}

function refusal({ status, isResourceExhausted }: RateLimitFilterSettings, body: Buffer): LocalReply {
  return {
    status,
    body: body.toString('latin1'),
    ...(body.length === 0 ? {} : { bytes: body }),
    flag: 'RL',
    details: 'request_rate_limited',
    ...(isResourceExhausted ? { grpcStatus: RESOURCE_EXHAUSTED } : {}),
  };
}

export const RATE_LIMIT_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'none',
  compile(settings, context) {
    const limits = new RateLimits(settings as RateLimitFilterSettings, context);
    return (callbacks) => new RateLimitFilter(limits, callbacks);
  },
};
