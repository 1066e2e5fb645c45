// The filters of a connection manager before its router: compiled once per snapshot, opened for each request. Step 3
// of the request flow. A manager without filters has no chain, and its streams go straight to the router.

import { WeirError } from '../../base/errors.ts';
import type { FiltersOfRoute, HttpFilterSettings } from '../../snapshot/index.ts';
import { Method, type RequestHead } from '../../wasm/http1.ts';
import type { FilterInUse } from '../filter-in-use.ts';
import type { RoutesInUse } from '../route/routes-in-use.ts';
import { type UpstreamCall, UpstreamCalls } from '../router/upstream-call.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import type { WorkerContext } from '../worker-context.ts';
import { BodyUses, seesRequestBodies, seesResponseBodies } from './body-uses.ts';
import { DecodingPass } from './decoding-pass.ts';
import { EncodingPass } from './encoding-pass.ts';
import type { CountedCluster, CreateFilter, FilterUses, HttpFilter } from './filter.ts';
import type { CallReceiver, CallRequest } from './filter-call.ts';
import { type FilteredPasses, StreamFilterCallbacks } from './filter-callbacks.ts';
import { ChainContext } from './filter-context.ts';
import type { FilteredStream } from './filtered-stream.ts';
import { FILTER_FAULT, hasBody, type LocalReply } from './local-reply.ts';
import type { ReplyHead } from './reply-head.ts';

/** A filter of the chain. */
export interface ChainMember extends FilterUses {
  readonly create: CreateFilter;
  /** Null for one that always takes part. */
  readonly isAwake: ((head: RequestHead) => boolean) | null;
  /** What routes call it. */
  readonly configName: string;
  /** Only routes that turn it on have it. */
  readonly isDisabled: boolean;
  /** What a level of a route says to it, prepared. */
  readonly prepared: PrepareSettings;
  /** What levels say that are of another type is not for it; null for all. Undefined where the configuration has seen to that. */
  readonly routeType: string | null | undefined;
  /** Told of requests that meet it; null where nobody wants to know. */
  readonly use: FilterInUse | null;
}

type PrepareSettings = (settings: object, routes: RoutesInUse) => unknown;
type SettingsByMember = readonly (readonly unknown[])[];

const NO_SETTINGS: readonly unknown[] = [];

/** As many as fit into the bits of a number; further ones are always awake. */
const MOST_SLEEPERS = 31;

export class FilterChain {
  readonly create: readonly CreateFilter[];
  readonly encodes: boolean;
  /** For what filters ask others. */
  readonly calls: UpstreamCalls;
  /** What the filters do with the bodies of each direction. */
  readonly requestUses: BodyUses;
  readonly responseUses: BodyUses;
  /** Told of requests that meet the chain. */
  readonly uses: readonly FilterInUse[];
  readonly #members: readonly ChainMember[];
  /** Those that may sleep. */
  readonly #sleepers: readonly ChainMember[];
  /** By a bit for each that sleeps: the chain of the others. */
  readonly #without = new Map<number, FilterChain | null>();
  /** What each filter hears from a route that says nothing to any. */
  readonly #unaddressed: SettingsByMember;
  /** By what routes say: the chain of those that they leave on, and what each of this chain hears. */
  readonly #enabled = new WeakMap<FiltersOfRoute, FilterChain | null>();
  readonly #settings = new WeakMap<FiltersOfRoute, SettingsByMember>();
  /** That of routes which say nothing. */
  #enabledByNobody: FilterChain | null | undefined = undefined;

  /**
   * @param statScope of the connection manager, with its final dot. @param cells of what the filters count, by name.
   * @param opened told of the context, which its owner closes, before anything is made with it.
   * @returns null when there are none. @throws WeirError for a filter that this build lacks.
   */
  static compile(
    context: WorkerContext,
    clusters: ClusterMap,
    filters: readonly HttpFilterSettings[],
    statScope: string,
    cells: Readonly<Record<string, number>> = {},
    opened: (context: ChainContext) => void = () => {},
  ): FilterChain | null {
    const chainContext = new ChainContext(context, clusters, statScope, cells);
    opened(chainContext);
    const members = filters.map((filter) => compileMember(context, filter, chainContext));
    return FilterChain.of(members, new UpstreamCalls(context, clusters));
  }

  /** @returns null when there are none. */
  static of(members: readonly ChainMember[], calls: UpstreamCalls): FilterChain | null {
    return members.length === 0 ? null : new FilterChain(members, calls);
  }

  private constructor(members: readonly ChainMember[], calls: UpstreamCalls) {
    this.#members = [...members];
    this.uses = members.flatMap(({ use }) => use ?? []);
    this.calls = calls;
    this.#sleepers = sleepersOf(members);
    this.create = members.map(({ create }) => create);
    this.#unaddressed = members.map(() => NO_SETTINGS);
    this.encodes = members.some(({ encodes }) => encodes);
    this.requestUses = new BodyUses(
      members.map(({ requestBody }) => requestBody),
      false,
      seesRequestBodies,
    );
    this.responseUses = new BodyUses(
      members.map(({ responseBody }) => responseBody),
      true,
      seesResponseBodies,
    );
  }

  /** The chain of those that take part in what begins now; null when nobody does. */
  awake(head: RequestHead): FilterChain | null {
    const sleepers = this.#sleepers;
    let asleep = 0;
    for (let at = 0; at < sleepers.length; at += 1) if (!sleepers[at]!.isAwake!(head)) asleep |= 1 << at;
    if (asleep === 0) return this;
    let rest = this.#without.get(asleep);
    if (rest === undefined) {
      const sleeping = new Set(sleepers.filter((_, at) => (asleep & (1 << at)) !== 0));
      rest = FilterChain.of(
        this.#members.filter((member) => !sleeping.has(member)),
        this.calls,
      );
      this.#without.set(asleep, rest);
    }
    return rest;
  }

  /** The chain of those that a route leaves on; null when it turns all off. @param said null for one that says nothing. */
  enabledBy(said: FiltersOfRoute | null): FilterChain | null {
    if (said === null) {
      if (this.#enabledByNobody === undefined) this.#enabledByNobody = this.#leftOnBy(null);
      return this.#enabledByNobody;
    }
    let enabled = this.#enabled.get(said);
    if (enabled === undefined) {
      enabled = this.#leftOnBy(said);
      this.#enabled.set(said, enabled);
    }
    return enabled;
  }

  #leftOnBy(said: FiltersOfRoute | null): FilterChain | null {
    const on = this.#members.filter(
      ({ configName, isDisabled }) => !(said?.get(configName)?.[0]?.isDisabled ?? isDisabled),
    );
    return on.length === this.#members.length ? this : FilterChain.of(on, this.calls);
  }

  /** What a route says to each filter of this chain. @param routes that it is of. */
  settingsOf(said: FiltersOfRoute | null, routes: RoutesInUse): SettingsByMember {
    if (said === null) return this.#unaddressed;
    let settings = this.#settings.get(said);
    if (settings === undefined) {
      settings = this.#members.map(({ configName, prepared, routeType }) =>
        (said.get(configName) ?? []).flatMap((level) => {
          if (level.settings === undefined || (routeType !== undefined && level.type !== routeType)) return [];
          return [prepared(level.settings, routes)];
        }),
      );
      this.#settings.set(said, settings);
    }
    return settings;
  }

  open(context: WorkerContext, stream: FilteredStream): StreamFilters {
    return new StreamFilters(context, this, stream);
  }
}

/** The filters of one request, and how far its messages have come through them. */
export class StreamFilters implements FilteredPasses {
  /** False where the response goes by all of them. */
  readonly encodes: boolean;
  readonly decoding: DecodingPass;
  /** Made when a response meets it, or somebody asks: those of many requests go by. */
  #encoding: EncodingPass | null = null;
  #isAbandoned = false;
  readonly #filters: readonly HttpFilter[];
  readonly #chain: FilterChain;
  readonly #context: WorkerContext;
  readonly #stream: FilteredStream;
  /** What filters wait for; null as long as none has asked. */
  #calls: Set<UpstreamCall> | null = null;
  /** What filters know together; null as long as none has asked. */
  #shared: Map<string, object> | null = null;
  /** Of a reply of the proxy's own, while filters look at it. */
  #replyHead: ReplyHead | null = null;
  /** How many have seen the last such reply, in the order of responses. */
  #replySeenBy = 0;
  /** What the route said to filters when one of them asked last, and what it is to each. */
  #said: FiltersOfRoute | null = null;
  #settings: SettingsByMember | null = null;

  constructor(context: WorkerContext, chain: FilterChain, stream: FilteredStream) {
    this.#context = context;
    this.#stream = stream;
    this.#chain = chain;
    const { create } = chain;
    const count = create.length;
    const filters = new Array<HttpFilter>(count);
    for (let index = 0; index < count; index += 1) {
      filters[index] = create[index]!(new StreamFilterCallbacks(this, stream, index, count));
    }
    this.#filters = filters;
    for (const use of chain.uses) use.enter();
    this.encodes = chain.encodes && filters.some(looksAtResponses);
    this.decoding = new DecodingPass(context, stream, filters, chain.requestUses.wantedBy(filters));
  }

  get encoding(): EncodingPass {
    if (this.#encoding === null) {
      this.#encoding = this.#passFrom(0);
      if (this.#isAbandoned) this.#encoding.abandon();
    }
    return this.#encoding;
  }

  #passFrom(first: number): EncodingPass {
    const filters = this.#filters;
    return new EncodingPass(this.#context, this.#stream, filters, this.#chain.responseUses.wantedBy(filters), first);
  }

  /** The request's head as it was when a filter stopped it; empty if none did. */
  get heldRequestHead(): string {
    return this.decoding.heldHead;
  }

  /** Of both bodies, while filters keep them back. */
  get heldBytes(): number {
    return this.decoding.heldBytes + (this.#encoding === null ? 0 : this.#encoding.heldBytes);
  }

  /**
   * Lets filters edit a reply of the proxy's own: those that have seen no head yet, of a response that it takes the place of
   * or of another reply. @returns false when one of them has seen to another answer.
   */
  encodeLocalReply(head: ReplyHead, reply: LocalReply): boolean {
    const { body, bytes } = reply;
    const isEnd = !hasBody(reply);
    reply.editHead?.(head);
    this.#replyHead = head;
    const count = this.#filters.length;
    for (let at = Math.max(this.#replySeenBy, this.encoding.headSeenBy); at < count; at += 1) {
      this.#replySeenBy = at + 1;
      const filter = this.#filters[count - 1 - at]!;
      filter.encodeHeaders?.(head, head.status, isEnd);
      if (this.#replyHead !== head) return false;
      if (!isEnd && this.#stream.methodId !== Method.HEAD) filter.localReplyBody?.(bytes ?? Buffer.from(body));
    }
    this.#replyHead = null;
    return true;
  }

  get isReplying(): boolean {
    return this.#replyHead !== null;
  }

  /** As FilterCallbacks.restateReply. */
  restateReply(status: number): void {
    if (this.#replyHead === null) throw new WeirError('WEIR_FILTER_EDIT', 'no reply of the proxy itself is at hand');
    this.#replyHead.setStatus(status);
    this.#stream.status = status;
  }

  /** As FilterCallbacks.forwardInstead. @param index in the order of responses. */
  forwardInstead(index: number, request: string): boolean {
    return this.#stream.forwardInstead(request, () => {
      this.abandon();
      this.#replyHead = null;
      this.#replySeenBy = 0;
      this.#encoding = this.#passFrom(index);
    });
  }

  /** There is another answer than the one that was on its way: nothing moves on. */
  abandon(): void {
    this.#isAbandoned = true;
    this.decoding.abandon();
    if (this.#encoding !== null) this.#encoding.abandon();
  }

  destroy(): void {
    this.abandon();
    if (this.#calls !== null) for (const call of this.#calls) call.cancel();
    this.#calls = null;
    for (const use of this.#chain.uses) use.leave();
    for (const filter of this.#filters) filter.onDestroy?.();
  }

  call(request: CallRequest, receiver: CallReceiver): void {
    if (this.#stream.hasEnded) return;
    let call: UpstreamCall | null = null;
    // The event is the upstream's, whose connection is not at fault.
    const tell = (told: () => void): void => {
      if (call !== null) this.#calls?.delete(call);
      try {
        told();
      } catch (error) {
        this.#context.logFault('what a filter made of an answer', error);
        this.#stream.giveUp(FILTER_FAULT);
      }
    };
    // To HTTP/2 upstreams a head goes through the codec, where that of the request at hand may lie.
    const isAside = this.decoding.hasLiveHead;
    if (isAside && !this.decoding.putHeadAside()) return;
    call = this.#chain.calls.begin(request, {
      onAnswer: (answer) => tell(() => receiver.onAnswer(answer)),
      onCallFailure: (failure) => tell(() => receiver.onCallFailure(failure)),
    });
    if (isAside) this.decoding.takeHeadBack();
    if (call === null) return;
    this.#calls ??= new Set();
    this.#calls.add(call);
  }

  guarded(act: () => boolean): boolean {
    try {
      return act();
    } catch (error) {
      this.#context.logFault('what a filter made of a body', error);
      this.#stream.giveUp(FILTER_FAULT);
      return false;
    }
  }

  shared<Shared extends object>(key: string, make: () => Shared): Shared {
    this.#shared ??= new Map();
    let shared = this.#shared.get(key) as Shared | undefined;
    if (shared === undefined) {
      shared = make();
      this.#shared.set(key, shared);
    }
    return shared;
  }

  clusterNamed(name: string): CountedCluster | null {
    return this.#chain.calls.clusterNamed(name);
  }

  routeSettings(index: number): readonly unknown[] {
    const said = this.#stream.filtersOfRoute;
    if (this.#settings === null || said !== this.#said) {
      this.#said = said;
      this.#settings = this.#chain.settingsOf(said, this.#stream.routes);
    }
    return this.#settings[index]!;
  }
}

/** @throws WeirError for a filter that this build lacks. */
export function compileMember(
  context: WorkerContext,
  { name, settings, configName = name, isDisabled = false }: HttpFilterSettings,
  chainContext: ChainContext,
): ChainMember {
  const kind = context.httpFilters[name];
  if (kind === undefined) throw new WeirError('WEIR_UNKNOWN_FILTER', `no HTTP filter is called ${name}`);
  const { isAwake } = kind;
  const { requestBody, encodes, responseBody, remakesRequests = false } = { ...kind, ...kind.usesOf?.(settings) };
  return {
    requestBody,
    encodes,
    responseBody,
    remakesRequests,
    create: kind.compile(settings, chainContext),
    isAwake: isAwake === undefined ? null : (head) => isAwake(settings, chainContext, head),
    configName,
    isDisabled,
    prepared: onePerSettings(
      (ofRoute, routes) => kind.compileForRoute?.(ofRoute, chainContext.ofRoutes(routes)) ?? ofRoute,
    ),
    routeType: undefined,
    use: null,
  };
}

/** What comes to those behind one that remakes requests cannot be told by the head of the client. */
function sleepersOf(members: readonly ChainMember[]): readonly ChainMember[] {
  const remaker = members.findIndex(({ remakesRequests }) => remakesRequests);
  const before = remaker < 0 ? members : members.slice(0, remaker + 1);
  return before.filter(({ isAwake }) => isAwake !== null).slice(0, MOST_SLEEPERS);
}

/** A kind that encodes may have nothing to do with this request. */
function looksAtResponses(filter: HttpFilter): boolean {
  return (
    filter.encodeHeaders !== undefined ||
    filter.encodeData !== undefined ||
    filter.encodeTrailers !== undefined ||
    filter.localReplyBody !== undefined
  );
}

/** Levels are shared by many routes of a table, prepared once, and gone with it. */
function onePerSettings(prepare: PrepareSettings): PrepareSettings {
  const known = new WeakMap<object, unknown>();
  return (settings, routes) => {
    if (!known.has(settings)) known.set(settings, prepare(settings, routes));
    return known.get(settings);
  };
}
