// Cross-origin requests of browsers (the Fetch standard's CORS protocol): answers preflights and tells browsers which
// responses their pages may read. Worker thread; step 3 of the request flow. An origin that is not allowed is not turned
// away here: without the fields, its browser does that.

import {
  compileByteMatch,
  type EditableHead,
  type FilterCallbacks,
  type FilterContext,
  type FilterCounter,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  type LocalReply,
  replaceField,
} from '../../../data-plane/index.ts';
import { Method, type RequestHead } from '../../../wasm/http1.ts';
import type { CorsPolicySettings, CorsSettings } from './settings.ts';

const PREFLIGHT_ANSWER: LocalReply = { status: 200, body: '', flag: '-', details: 'cors_response' };
const ANY_ORIGIN = '*';

type Draw = () => boolean;

/** A level of a route, with its shares ready to be drawn by. */
interface Level {
  readonly settings: CorsPolicySettings;
  readonly isEnabled: Draw;
  readonly isShadowed: Draw;
}

/** The levels of a route as one. */
class Policy {
  readonly isEnabled: Draw;
  readonly isShadowed: Draw;
  readonly methods: string;
  readonly headers: string;
  readonly exposedHeaders: string;
  readonly maxAge: string;
  readonly allowsCredentials: boolean;
  readonly allowsPrivateNetwork: boolean;
  readonly forwardsStrangers: boolean;
  readonly allows: (origin: string) => boolean;

  /** @param levels at least one, the most specific first. */
  constructor(levels: readonly Level[]) {
    const settings = levels.map((level) => level.settings);
    const text = (of: (settings: CorsPolicySettings) => string): string => settings.map(of).find(Boolean) ?? '';
    const flag = (of: (settings: CorsPolicySettings) => boolean | null, byDefault: boolean): boolean =>
      settings.map(of).find((value) => value !== null) ?? byDefault;
    ({ isEnabled: this.isEnabled, isShadowed: this.isShadowed } = levels[0]!);
    this.methods = text(({ methods }) => methods);
    this.headers = text(({ headers }) => headers);
    this.exposedHeaders = text(({ exposedHeaders }) => exposedHeaders);
    this.maxAge = text(({ maxAge }) => maxAge);
    this.allowsCredentials = flag(({ allowsCredentials }) => allowsCredentials, false);
    this.allowsPrivateNetwork = flag(({ allowsPrivateNetwork }) => allowsPrivateNetwork, false);
    this.forwardsStrangers = flag(({ forwardsStrangers }) => forwardsStrangers, true);
    const tests = (settings.find(({ origins }) => origins.length > 0)?.origins ?? []).map(compileByteMatch);
    const allowsAny = tests.some((test) => test(ANY_ORIGIN));
    this.allows = (origin) => allowsAny || tests.some((test) => test(origin));
  }
}

/** What all requests of a connection manager share. */
class Cors {
  readonly valid: FilterCounter;
  readonly invalid: FilterCounter;
  /** By the levels, which are the same array for the same route. */
  readonly #policies = new WeakMap<readonly unknown[], Policy>();

  constructor({ validCounter, invalidCounter }: CorsSettings, context: FilterContext) {
    this.valid = context.counter(validCounter);
    this.invalid = context.counter(invalidCounter);
  }

  policyOf(levels: readonly unknown[]): Policy {
    let policy = this.#policies.get(levels);
    if (policy === undefined) {
      policy = new Policy(levels as readonly Level[]);
      this.#policies.set(levels, policy);
    }
    return policy;
  }
}

class CorsFilter implements HttpFilter {
  readonly #cors: Cors;
  readonly #callbacks: FilterCallbacks;
  /** Null where responses get no fields. */
  #policy: Policy | null = null;
  #origin = '';
  #isPreflight = false;
  #wantsPrivateNetwork = false;

  constructor(cors: Cors, callbacks: FilterCallbacks) {
    this.#cors = cors;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const levels = this.#callbacks.routeSettings;
    const origin = head.headerByName('origin') ?? '';
    if (levels.length === 0 || origin === '') return 'continue';
    const policy = this.#cors.policyOf(levels);
    const isEnabled = policy.isEnabled();
    if (!isEnabled && !policy.isShadowed()) return 'continue';
    const isPreflight = head.methodId === Method.OPTIONS && !!head.headerByName('access-control-request-method');
    if (!policy.allows(origin)) {
      this.#cors.invalid.add(1);
      return isEnabled && isPreflight && !policy.forwardsStrangers ? this.#answer() : 'continue';
    }
    this.#cors.valid.add(1);
    if (!isEnabled) return 'continue';
    this.#policy = policy;
    this.#origin = origin;
    if (!isPreflight) return 'continue';
    this.#isPreflight = true;
    this.#wantsPrivateNetwork = head.headerByName('access-control-request-private-network') === 'true';
    return this.#answer();
  }

  encodeHeaders(head: EditableHead): FilterStatus {
    const policy = this.#policy;
    if (policy === null) return 'continue';
    replaceField(head, 'access-control-allow-origin', this.#origin);
    if (policy.allowsCredentials) replaceField(head, 'access-control-allow-credentials', 'true');
    if (!this.#isPreflight) {
      replaceWhereSaid(head, 'access-control-expose-headers', policy.exposedHeaders);
      return 'continue';
    }
    if (policy.allowsPrivateNetwork && this.#wantsPrivateNetwork) {
      replaceField(head, 'access-control-allow-private-network', 'true');
    }
    replaceWhereSaid(head, 'access-control-allow-methods', policy.methods);
    replaceWhereSaid(head, 'access-control-allow-headers', policy.headers);
    replaceWhereSaid(head, 'access-control-max-age', policy.maxAge);
    return 'continue';
  }

  #answer(): FilterStatus {
    this.#callbacks.reply(PREFLIGHT_ANSWER);
    return 'stop';
  }
}

function replaceWhereSaid(head: EditableHead, name: string, value: string): void {
  if (value !== '') replaceField(head, name, value);
}

export const CORS_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'none',
  // Only browsers send it, and only across origins.
  isAwake: (_settings, _context, head) => head.headerByName('origin') !== undefined,
  compileForRoute(settings, context): Level {
    const { enabled, shadowed } = settings as CorsPolicySettings;
    return {
      settings: settings as CorsPolicySettings,
      isEnabled: enabled === null ? () => true : context.share(enabled),
      isShadowed: shadowed === null ? () => false : context.share(shadowed),
    };
  },
  compile(settings, context) {
    const cors = new Cors(settings as CorsSettings, context);
    return (callbacks) => new CorsFilter(cors, callbacks);
  },
};
