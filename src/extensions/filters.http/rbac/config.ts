// RBAC and RBACPerRoute messages → settings of the rbac filter.

import {
  type Conversion,
  type HttpFilterManifest,
  type MessageTypes,
  REQUEST_INPUTS,
  rejected,
  supported,
} from '../../../config/index.ts';
import { ACCESS_FIELDS_SUPPORT, ACCESS_SUPPORT, convertAccess } from '../../access/rules-config.ts';
import type { RbacCounters, RbacFilterSettings, RbacSettings } from './settings.ts';

const FILTER = 'proxy.extensions.filters.http.rbac.v3.RBAC';
const PER_ROUTE = 'proxy.extensions.filters.http.rbac.v3.RBACPerRoute';

type FilterMessage = MessageTypes[typeof FILTER];

export const RBAC: HttpFilterManifest = {
  support: {
    [FILTER]: {
      otherwise: rejected(),
      fields: {
        rules: supported(),
        ...ACCESS_FIELDS_SUPPORT,
        rules_stat_prefix: supported(),
        shadow_rules_stat_prefix: supported(),
        track_per_rule_stats: supported(),
      },
    },
    [PER_ROUTE]: { otherwise: rejected(), fields: { rbac: supported('without it the filter is off there') } },
    ...ACCESS_SUPPORT,
  },
  convert(message, at, conversion) {
    const own = convertFilter(message as FilterMessage, at, conversion);
    const counters = countersOf(own);
    const settings: RbacFilterSettings = {
      own,
      counters,
      policyScope: scopeOf(own.rulesPrefix, 'policy.'),
      shadowPolicyScope: scopeOf(own.shadowPrefix, 'policy.'),
    };
    return { name: 'filters.http.rbac', settings, counters: Object.values(counters) };
  },
  ofRoutes: {
    type: PER_ROUTE,
    convert(message, at, conversion) {
      const { rbac } = message as MessageTypes[typeof PER_ROUTE];
      return rbac === null ? 'off' : convertFilter(rbac, `${at}.rbac`, conversion);
    },
  },
};

function countersOf({ rulesPrefix, shadowPrefix }: RbacSettings): RbacCounters {
  return {
    allowed: scopeOf(rulesPrefix, 'allowed'),
    denied: scopeOf(rulesPrefix, 'denied'),
    shadowAllowed: scopeOf(shadowPrefix, 'shadow_allowed'),
    shadowDenied: scopeOf(shadowPrefix, 'shadow_denied'),
  };
}

function scopeOf(prefix: string, name: string): string {
  if (prefix === '') return `rbac.${name}`;
  return `rbac.${prefix}${prefix.endsWith('.') ? '' : '.'}${name}`;
}

function convertFilter(message: FilterMessage, at: string, conversion: Conversion): RbacSettings {
  return {
    rules: convertAccess(message, '', at, REQUEST_INPUTS, conversion),
    shadowRules: convertAccess(message, 'shadow_', at, REQUEST_INPUTS, conversion),
    rulesPrefix: message.rules_stat_prefix,
    shadowPrefix: message.shadow_rules_stat_prefix,
    countsPolicies: message.track_per_rule_stats,
  };
}
