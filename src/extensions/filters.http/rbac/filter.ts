// Role-based access: who may do what. Answers requests that the rules do not allow with a 403. Worker thread; step 3 of the
// request flow.
//
//   head ──► shadow rules: counted ──► rules: counted, allowed or answered

import type {
  FilterCallbacks,
  FilterContext,
  FilterCounter,
  FilterStatus,
  HttpFilter,
  HttpFilterKind,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { Access, type Decision } from '../../access/rules.ts';
import type { RbacFilterSettings, RbacSettings } from './settings.ts';

const NAMESPACE = 'envoy.filters.http.rbac';
/** Loggers read there whether a rule of the action LOG fits. */
const COMMON_NAMESPACE = 'envoy.common';
const SPACES = /\s/g;

interface Level {
  readonly settings: RbacSettings;
  readonly access: Access | null;
  readonly shadow: Access | null;
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
    const [level = rbac.own] = this.#callbacks.routeSettings as readonly Level[];
    if (level.shadow !== null) this.#judgeShadow(level, level.shadow, head);
    if (level.access === null) return 'continue';
    const { rulesPrefix, countsPolicies } = level.settings;
    const decision = level.access.decide(head, this.#callbacks);
    const { isAllowed, policy } = decision;
    (isAllowed ? rbac.allowed : rbac.denied).add(1);
    if (countsPolicies && policy !== '') {
      rbac.countPolicy(rbac.settings.policyScope, policy, isAllowed ? 'allowed' : 'denied');
    }
    this.#note(`${rulesPrefix}enforced_`, decision);
    if (level.access.action === 'log')
      this.#callbacks.addMetadata(COMMON_NAMESPACE, { access_log_hint: policy !== '' });
    if (isAllowed) return 'continue';
    this.#callbacks.reply({
      status: 403,
      body: 'RBAC: access denied',
      flag: '-',
      details: `rbac_access_denied_matched_policy[${(policy || 'none').replace(SPACES, '_')}]`,
    });
    return 'stop';
  }

  #judgeShadow({ settings }: Level, shadow: Access, head: RequestHead): void {
    const rbac = this.#rbac;
    const decision = shadow.decide(head, this.#callbacks);
    const { isAllowed, policy } = decision;
    (isAllowed ? rbac.shadowAllowed : rbac.shadowDenied).add(1);
    if (settings.countsPolicies && policy !== '') {
      rbac.countPolicy(rbac.settings.shadowPolicyScope, policy, isAllowed ? 'shadow_allowed' : 'shadow_denied');
    }
    this.#note(`${settings.shadowPrefix}shadow_`, decision);
  }

  #note(prefix: string, { isAllowed, policy }: Decision): void {
    this.#callbacks.addMetadata(NAMESPACE, {
      [`${prefix}engine_result`]: isAllowed ? 'allowed' : 'denied',
      ...(policy === '' ? {} : { [`${prefix}effective_policy_id`]: policy }),
    });
  }
}

function levelOf(settings: RbacSettings, context: FilterContext): Level {
  const { rules, shadowRules } = settings;
  return {
    settings,
    access: rules && new Access(rules, context),
    shadow: shadowRules && new Access(shadowRules, context),
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
