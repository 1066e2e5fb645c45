// Role-based access: who may do what. Answers requests that the rules do not allow with a 403. Worker thread; step 3 of the
// request flow.
//
//   head ──► shadow rules: counted ──► rules: counted, allowed or answered

import type { JsonObject } from '../../../base/json.ts';
import type {
  FilterCallbacks,
  FilterContext,
  FilterCounter,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { type Access, compileAccess, type Decision } from '../../access/rules.ts';
import type { AccessRules } from '../../access/settings.ts';
import type { RbacFilterSettings, RbacSettings } from './settings.ts';

const NAMESPACE = 'envoy.filters.http.rbac';
/** Loggers read there whether a rule of the action LOG fits. */
const COMMON_NAMESPACE = 'envoy.common';
const SPACES = /\s/g;

interface Level {
  readonly settings: RbacSettings;
  readonly rules: Rules | null;
  readonly shadow: Rules | null;
}

interface Rules {
  readonly access: Access;
  /** What others read of each decision. */
  readonly notes: ReadonlyMap<Decision, JsonObject>;
}

/** What all requests of a connection manager share. */
class Rbac {
  readonly own: Level;
  readonly allowed: FilterCounter;
  readonly denied: FilterCounter;
  readonly shadowAllowed: FilterCounter;
  readonly shadowDenied: FilterCounter;
  readonly settings: RbacFilterSettings;
  readonly #context: FilterContext;
  /** As many as the configuration has policies, and two for each. */
  readonly #ofPolicies = new Map<string, FilterCounter>();

  constructor(settings: RbacFilterSettings, context: FilterContext) {
    const { counters } = settings;
    this.settings = settings;
    this.#context = context;
    this.own = levelOf(settings.own, context);
    this.allowed = context.counter(counters.allowed);
    this.denied = context.counter(counters.denied);
    this.shadowAllowed = context.counter(counters.shadowAllowed);
    this.shadowDenied = context.counter(counters.shadowDenied);
  }

  countPolicy(scope: string, policy: string, what: string): void {
    const name = `${scope}${policy}.${what}`;
    let counter = this.#ofPolicies.get(name);
    if (counter === undefined) {
      counter = this.#context.namedCounter(name);
      this.#ofPolicies.set(name, counter);
    }
    counter.add(1);
  }
}

class RbacFilter implements HttpFilter {
  readonly #rbac: Rbac;
  readonly #callbacks: FilterCallbacks;

  constructor(rbac: Rbac, callbacks: FilterCallbacks) {
    this.#rbac = rbac;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const rbac = this.#rbac;
    const level = (this.#callbacks.routeSettings as readonly Level[])[0] ?? rbac.own;
    if (level.shadow !== null) this.#judgeShadow(level, level.shadow, head);
    if (level.rules === null) return 'continue';
    const { access, notes } = level.rules;
    const { countsPolicies } = level.settings;
    const decision = access.decide(head, this.#callbacks);
    const { isAllowed, policy, logHint } = decision;
    (isAllowed ? rbac.allowed : rbac.denied).add(1);
    if (countsPolicies && policy !== '') {
      rbac.countPolicy(rbac.settings.policyScope, policy, isAllowed ? 'allowed' : 'denied');
    }
    this.#callbacks.addMetadata(NAMESPACE, notes.get(decision)!);
    if (logHint !== null) this.#callbacks.addMetadata(COMMON_NAMESPACE, { access_log_hint: logHint });
    if (isAllowed) return 'continue';
    this.#callbacks.reply({
      status: 403,
      body: 'RBAC: access denied',
      flag: '-',
      details: `rbac_access_denied_matched_policy[${(policy || 'none').replace(SPACES, '_')}]`,
    });
    return 'stop';
  }

  #judgeShadow({ settings }: Level, { access, notes }: Rules, head: RequestHead): void {
    const rbac = this.#rbac;
    const decision = access.decide(head, this.#callbacks);
    const { isAllowed, policy } = decision;
    (isAllowed ? rbac.shadowAllowed : rbac.shadowDenied).add(1);
    if (settings.countsPolicies && policy !== '') {
      rbac.countPolicy(rbac.settings.shadowPolicyScope, policy, isAllowed ? 'shadow_allowed' : 'shadow_denied');
    }
    this.#callbacks.addMetadata(NAMESPACE, notes.get(decision)!);
  }
}

function levelOf(settings: RbacSettings, context: FilterContext): Level {
  const { rules, shadowRules, rulesPrefix, shadowPrefix } = settings;
  return {
    settings,
    rules: rules && rulesOf(rules, context, `${rulesPrefix}enforced_`),
    shadow: shadowRules && rulesOf(shadowRules, context, `${shadowPrefix}shadow_`),
  };
}

function rulesOf(rules: AccessRules, context: FilterContext, prefix: string): Rules {
  const access = compileAccess(rules, context);
  return { access, notes: new Map(access.decisions.map((decision) => [decision, noteOf(prefix, decision)])) };
}

function noteOf(prefix: string, { isAllowed, policy }: Decision): JsonObject {
  return {
    [`${prefix}engine_result`]: isAllowed ? 'allowed' : 'denied',
    ...(policy === '' ? {} : { [`${prefix}effective_policy_id`]: policy }),
  };
}

export const RBAC_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  compileForRoute: (settings, context) => levelOf(settings as RbacSettings, context),
  compile(settings, context) {
    const rbac = new Rbac(settings as RbacFilterSettings, context);
    return (callbacks) => new RbacFilter(rbac, callbacks);
  },
};
