// Gives clients other responses than those that there are for them: of the proxy's own, or to another request, which the proxy
// makes. Replies of the proxy itself are taken like responses of upstreams. Worker thread; step 5 of the request flow.

import {
  type EditableHead,
  type FilterCallbacks,
  type FilterContext,
  type FilterCounter,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  redirectedHead,
  TextHead,
} from '../../../data-plane/index.ts';
import { Method, type RequestHead } from '../../../wasm/http1.ts';
import { type LocalAnswer, type OtherRequest, Policies } from './policies.ts';
import type { CustomResponseSettings } from './settings.ts';

const NOT_SENT = '';

class CustomResponses {
  readonly own: Policies;
  readonly context: FilterContext;
  readonly noRoute: FilterCounter;
  readonly invalidUri: FilterCounter;

  constructor(settings: CustomResponseSettings, context: FilterContext) {
    this.own = new Policies(settings, context);
    this.context = context;
    this.noRoute = context.counter(settings.counters.noRoute);
    this.invalidUri = context.counter(settings.counters.invalidUri);
  }
}

class CustomResponseFilter implements HttpFilter {
  readonly #responses: CustomResponses;
  readonly #callbacks: FilterCallbacks;
  /** Of the request as it came here, as text; empty where no policy could ask for it, or it has not come. */
  #head = NOT_SENT;
  #isForHead = false;
  /** What has been asked in place of the request, and the status that there was before; null for nothing. */
  #other: OtherRequest | null = null;
  #status = 0;

  constructor(responses: CustomResponses, callbacks: FilterCallbacks) {
    this.#responses = responses;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    if (!this.#levels().some(({ asksOthers }) => asksOthers)) return 'continue';
    const text = new TextHead(`${head.method} ${head.path()} HTTP/1.1`, '');
    for (const [name, value] of head.entries()) text.append(name, value);
    this.#head = text.text();
    this.#isForHead = head.methodId === Method.HEAD;
    return 'continue';
  }

  encodeHeaders(head: EditableHead, status: number): FilterStatus {
    if (this.#other !== null) return this.#amend(this.#other, head, status);
    // An answer that opens a tunnel is none that could be given otherwise.
    if (this.#callbacks.awaitsTunnel) return 'continue';
    const facts = this.#callbacks.facts(head);
    for (const level of this.#levels()) {
      const policy = level.find({ head, status, facts });
      if (policy?.kind === 'local') return this.#answer(policy, head, status);
      if (policy?.kind === 'redirect') return this.#ask(policy, status);
    }
    return 'continue';
  }

  /** The nearest first. */
  #levels(): readonly Policies[] {
    const ofRoute = this.#callbacks.routeSettings as readonly Policies[];
    const { own } = this.#responses;
    return ofRoute.length === 0 ? [own] : [...ofRoute, own];
  }

  #answer({ body, format, status, responseEdits }: LocalAnswer, head: EditableHead, former: number): FilterStatus {
    const facts = this.#callbacks.facts(head, body.toString());
    const bytes = format === null ? body : Buffer.from(format.render(facts), 'latin1');
    this.#callbacks.reply({
      status: status ?? former,
      body: bytes.toString(),
      bytes,
      ...(format === null ? {} : { contentType: format.contentType }),
      flag: '-',
      details: facts.details,
      editHead: (reply) => responseEdits?.apply(reply, { facts: this.#callbacks.facts(reply) }),
    });
    return 'stop';
  }

  #ask(other: OtherRequest, status: number): FilterStatus {
    // A reply to what has not come so far.
    if (this.#head === NOT_SENT) return 'continue';
    const { context, invalidUri, noRoute } = this.#responses;
    const head = TextHead.of(this.#head);
    const target = other.targetFor(head);
    if (target === undefined) {
      invalidUri.add(1);
      return 'continue';
    }
    other.requestEdits?.apply(head, { facts: this.#callbacks.facts(null) });
    const request = redirectedHead(head.text(), context.headerNames, {
      target,
      becomesGet: !this.#isForHead,
      headersToCopy: [],
      response: null,
    });
    // The answer may be there before `forwardInstead` returns.
    this.#other = other;
    this.#status = status;
    if (this.#callbacks.forwardInstead(request)) return 'stop';
    this.#other = null;
    noRoute.add(1);
    return 'continue';
  }

  /** What goes wrong with the other request is told as it is. */
  #amend({ status, responseEdits }: OtherRequest, head: EditableHead, answered: number): FilterStatus {
    if (answered < 200 || answered > 299) return 'continue';
    const wanted = status ?? this.#status;
    const callbacks = this.#callbacks;
    let edited = head;
    // A body behind a status that has none would be read as the next response.
    if (wanted !== 204 && wanted !== 304) {
      if (callbacks.isLocalReply) callbacks.restateReply(wanted);
      else edited = callbacks.heldResponseHead(wanted) ?? head;
    }
    responseEdits?.apply(edited, { facts: callbacks.facts(edited) });
    return 'continue';
  }
}

export const CUSTOM_RESPONSE_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'none',
  compileForRoute: (settings, context) => new Policies(settings as CustomResponseSettings, context),
  compile(settings, context) {
    const responses = new CustomResponses(settings as CustomResponseSettings, context);
    return (callbacks) => new CustomResponseFilter(responses, callbacks);
  },
};
