// Role-based access of connections: who may connect. Closes those that the rules do not allow, before the filters behind know
// of them. Worker thread.
//
//   new connection ──► shadow rules: counted ──► rules: counted, allowed or closed
//   bytes ── where enforcement is continuous, the same again

import type {
  FilterCounter,
  NetworkFilter,
  NetworkFilterCallbacks,
  NetworkFilterContext,
  NetworkFilterKind,
  NetworkFilterStatus,
} from '../../../data-plane/index.ts';
import {
  type Access,
  type AccessContext,
  type AccessSubject,
  compileAccess,
  type Decision,
} from '../../access/rules.ts';
import type { NetworkRbacSettings } from './settings.ts';

const NAMESPACE = 'envoy.filters.network.rbac';
/** Loggers read there whether a rule of the action LOG fits. */
const COMMON_NAMESPACE = 'envoy.common';
const SPACES = /\s/g;
const NO_HEAD = null as never;

/** What all connections of a chain share. */
class Rbac {
  readonly settings: NetworkRbacSettings;
  readonly context: NetworkFilterContext;
  readonly access: Access | null;
  readonly shadow: Access | null;
  readonly allowed: FilterCounter;
  readonly denied: FilterCounter;
  readonly shadowAllowed: FilterCounter;
  readonly shadowDenied: FilterCounter;

  constructor(settings: NetworkRbacSettings, context: NetworkFilterContext) {
    const { rules, shadowRules, counters } = settings;
    this.settings = settings;
    this.context = context;
    const ofConnections: AccessContext = {
      // Rules about headers have been refused.
      compileHeaders: () => () => false,
      compileTree(tree, resultOf) {
        const find = context.compileTree(tree, resultOf);
        return (_head, { connection }) => find(connection);
      },
    };
    this.access = rules && compileAccess(rules, ofConnections);
    this.shadow = shadowRules && compileAccess(shadowRules, ofConnections);
    this.allowed = context.counter(counters.allowed);
    this.denied = context.counter(counters.denied);
    this.shadowAllowed = context.counter(counters.shadowAllowed);
    this.shadowDenied = context.counter(counters.shadowDenied);
  }
}

class RbacFilter implements NetworkFilter {
  readonly #rbac: Rbac;
  readonly #callbacks: NetworkFilterCallbacks;
  readonly #subject: AccessSubject;
  /** Ends the wait of a connection that is to be closed. */
  #cancelDelay: (() => void) | null = null;

  constructor(rbac: Rbac, callbacks: NetworkFilterCallbacks) {
    this.#rbac = rbac;
    this.#callbacks = callbacks;
    const { connection } = callbacks;
    this.#subject = {
      connection,
      clientAddress: connection.remote.ip,
      state: (key) => connection.state(key),
      facts: () => ({
        metadata: (source) => (source === 'DYNAMIC' ? (callbacks.metadata ?? undefined) : undefined),
      }),
    };
  }

  onNewConnection(): NetworkFilterStatus {
    return this.#judge();
  }

  onData(): NetworkFilterStatus {
    return this.#rbac.settings.isContinuous ? this.#judge() : 'continue';
  }

  onClosed(): void {
    this.#cancelDelay?.();
  }

  #judge(): NetworkFilterStatus {
    const { access, shadow, allowed, denied } = this.#rbac;
    if (shadow !== null) this.#judgeShadow(shadow);
    if (access === null) return 'continue';
    const { isAllowed, policy, logHint } = access.decide(NO_HEAD, this.#subject);
    if (logHint !== null) this.#callbacks.addMetadata(COMMON_NAMESPACE, { access_log_hint: logHint });
    (isAllowed ? allowed : denied).add(1);
    if (isAllowed) return 'continue';
    this.#deny(`rbac_access_denied_matched_policy[${(policy || 'none').replace(SPACES, '_')}]`);
    return 'stop';
  }

  #judgeShadow(shadow: Access): void {
    const { shadowAllowed, shadowDenied } = this.#rbac;
    const decision = shadow.decide(NO_HEAD, this.#subject);
    (decision.isAllowed ? shadowAllowed : shadowDenied).add(1);
    this.#note(decision);
  }

  #note({ isAllowed, policy }: Decision): void {
    const { shadowPrefix } = this.#rbac.settings;
    this.#callbacks.addMetadata(NAMESPACE, {
      [`${shadowPrefix}shadow_engine_result`]: isAllowed ? 'allowed' : 'denied',
      ...(policy === '' ? {} : { [`${shadowPrefix}shadow_effective_policy_id`]: policy }),
    });
  }

  #deny(details: string): void {
    const { context, settings } = this.#rbac;
    const close = (): void => this.#callbacks.close({ details });
    if (settings.delayMs === 0) close();
    else this.#cancelDelay = context.clock.after(settings.delayMs, close);
  }
}

export const NETWORK_RBAC_FILTER: NetworkFilterKind = {
  isTerminal: false,
  readsData: true,
  compile(raw, context) {
    const settings = raw as NetworkRbacSettings;
    const rbac = new Rbac(settings, context);
    return { readsData: settings.isContinuous, create: (callbacks) => new RbacFilter(rbac, callbacks) };
  },
};
