// RBAC message → settings of the network rbac filter.

import {
  CONNECTION_INPUTS,
  type Conversion,
  durationMsOr,
  type MessageTypes,
  type NetworkFilterManifest,
  rejected,
  supported,
} from '../../../config/index.ts';
import { ACCESS_FIELDS_SUPPORT, ACCESS_SUPPORT, convertAccess } from '../../access/rules-config.ts';
import type { AccessRule, AccessRules } from '../../access/settings.ts';
import type { NetworkRbacSettings } from './settings.ts';

const FILTER = 'proxy.extensions.filters.network.rbac.v3.RBAC';
/** The number of EnforcementType. */
const CONTINUOUS = 1;

type FilterMessage = MessageTypes[typeof FILTER];

export const NETWORK_RBAC: NetworkFilterManifest = {
  isTerminal: false,
  support: {
    [FILTER]: {
      otherwise: rejected(),
      fields: {
        rules: supported('of addresses, ports, server names, certificates and metadata'),
        ...ACCESS_FIELDS_SUPPORT,
        stat_prefix: supported(),
        enforcement_type: supported('ONE_TIME_ON_FIRST_BYTE judges new connections, before anything goes on'),
        shadow_rules_stat_prefix: supported(),
        delay_deny: supported(),
      },
    },
    ...ACCESS_SUPPORT,
  },
  convert(raw, at, conversion) {
    const message = raw as FilterMessage;
    const prefix = withDot(message.shadow_rules_stat_prefix);
    const counters: NetworkRbacSettings['counters'] = {
      allowed: 'allowed',
      denied: 'denied',
      shadowAllowed: `${prefix}shadow_allowed`,
      shadowDenied: `${prefix}shadow_denied`,
    };
    const settings: NetworkRbacSettings = {
      rules: convertOwn(message, '', at, conversion),
      shadowRules: convertOwn(message, 'shadow_', at, conversion),
      shadowPrefix: message.shadow_rules_stat_prefix,
      isContinuous: message.enforcement_type === CONTINUOUS,
      delayMs: durationMsOr(message.delay_deny, 0),
      counters,
    };
    const statScope = `${withDot(message.stat_prefix)}rbac.`;
    return { name: 'filters.network.rbac', settings, statScope, counters: Object.values(counters) };
  },
};

function convertOwn(
  message: FilterMessage,
  prefix: '' | 'shadow_',
  at: string,
  conversion: Conversion,
): AccessRules | null {
  const rules = convertAccess(message, prefix, at, CONNECTION_INPUTS, conversion);
  if (rules?.kind !== 'policies') return rules;
  for (const { name, permissions, principals } of rules.policies) {
    if (![...permissions, ...principals].some(asksOfRequests)) continue;
    const where = `${at}.${prefix}rules.policies["${name}"]`;
    conversion.faults.error(where, 'asks of headers or paths, which connections do not have');
  }
  return rules;
}

function asksOfRequests(rule: AccessRule): boolean {
  switch (rule.kind) {
    case 'header':
    case 'path':
      return true;
    case 'all-of':
    case 'any-of':
      return rule.rules.some(asksOfRequests);
    case 'not':
      return asksOfRequests(rule.rule);
    default:
      return false;
  }
}

function withDot(prefix: string): string {
  return prefix === '' || prefix.endsWith('.') ? prefix : `${prefix}.`;
}
