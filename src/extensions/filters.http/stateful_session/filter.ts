// Sends the requests of a session to the host that has served it before, and tells the client which one that is whenever it
// is another. Worker thread; step 3 of the request flow.

import type {
  EditableHead,
  FilterCallbacks,
  FilterContext,
  FilterCounter,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { openSessionState, type SessionCodec } from './session-state.ts';
import type { SessionCounters, SessionSettings, StatefulSessionSettings } from './settings.ts';

const UNAVAILABLE = 503;

interface Sessions {
  /** Null: there are none. */
  readonly codec: SessionCodec | null;
  readonly isStrict: boolean;
  readonly missingStatus: number;
  /** Null where nothing is counted. */
  readonly counters: Readonly<Record<keyof SessionCounters, FilterCounter>> | null;
}

class StatefulSessionFilter implements HttpFilter {
  readonly #own: Sessions;
  readonly #context: FilterContext;
  readonly #callbacks: FilterCallbacks;
  /** Null for a request that has no sessions. */
  #sessions: Sessions | null = null;
  /** The host of its session; undefined where it has none. */
  #address: string | undefined = undefined;

  constructor(own: Sessions, context: FilterContext, callbacks: FilterCallbacks) {
    this.#own = own;
    this.#context = context;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const [sessions = this.#own] = this.#callbacks.routeSettings as readonly Sessions[];
    if (sessions.codec === null || !sessions.codec.covers(head.path())) return 'continue';
    this.#sessions = sessions;
    this.#address = sessions.codec.read(head, this.#nowSeconds);
    if (this.#address !== undefined) this.#callbacks.overrideHost(this.#address, sessions.isStrict);
    if (sessions.codec.restore?.(head)) this.#callbacks.settleEditedHead();
    return 'continue';
  }

  encodeHeaders(head: EditableHead, status: number): FilterStatus {
    const sessions = this.#sessions;
    if (sessions === null) return 'continue';
    if (status === UNAVAILABLE && status !== sessions.missingStatus && this.#lacksHost(sessions)) {
      this.#callbacks.restateReply(sessions.missingStatus);
    }
    const served = this.#callbacks.upstreamAddress;
    this.#count(sessions, served);
    const codec = sessions.codec!;
    const isNews = codec.writesAlways || served !== this.#address;
    if (served !== '' && isNews) codec.write(head, served, this.#nowSeconds);
    return 'continue';
  }

  /** The answer at hand is that there is none. */
  #lacksHost({ isStrict }: Sessions): boolean {
    const callbacks = this.#callbacks;
    if (!isStrict || this.#address === undefined || !callbacks.isLocalReply) return false;
    return callbacks.upstreamAddress === '' && callbacks.facts(null).details === 'no_healthy_upstream';
  }

  get #nowSeconds(): number {
    return Math.floor(this.#context.clock.wallMs() / 1000);
  }

  #count({ counters, isStrict }: Sessions, served: string): void {
    if (counters === null) return;
    const { routed, failedOpen, failedClosed, noSession } = counters;
    if (this.#address === undefined) {
      if (served !== '') noSession.add(1);
    } else if (served === this.#address) routed.add(1);
    else if (served !== '') failedOpen.add(1);
    else if (isStrict) failedClosed.add(1);
  }
}

function open(settings: SessionSettings, counters: Sessions['counters']): Sessions {
  const { state, isStrict, missingStatus } = settings;
  return { codec: state === null ? null : openSessionState(state), isStrict, missingStatus, counters };
}

export const STATEFUL_SESSION_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'none',
  // As the reference has it, only what the filter's own configuration names is counted.
  compileForRoute: (settings) => open(settings as SessionSettings, null),
  compile(settings, context) {
    const own = settings as StatefulSessionSettings;
    const { counters: names } = own;
    const counters = names && {
      routed: context.counter(names.routed),
      failedOpen: context.counter(names.failedOpen),
      failedClosed: context.counter(names.failedClosed),
      noSession: context.counter(names.noSession),
    };
    const sessions = open(own, counters);
    return (callbacks) => new StatefulSessionFilter(sessions, context, callbacks);
  },
};
