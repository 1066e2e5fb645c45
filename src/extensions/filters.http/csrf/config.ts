// CsrfPolicy message → settings of the csrf filter, and the same of routes.

import {
  type Conversion,
  convertStringMatcher,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  runtimeFractionOf,
  supported,
} from '../../../config/index.ts';
import type { Fraction, RuntimeSetting } from '../../../snapshot/index.ts';
import type { CsrfCounters, CsrfPolicySettings, CsrfSettings } from './settings.ts';

const POLICY = 'proxy.extensions.filters.http.csrf.v3.CsrfPolicy';
const COUNTERS: CsrfCounters = {
  missing: 'csrf.missing_source_origin',
  invalid: 'csrf.request_invalid',
  valid: 'csrf.request_valid',
};

/** In place of one that is missing, which is an error. */
const ALWAYS: RuntimeSetting<Fraction> = { key: '', default: { numerator: 100, denominator: 100 } };

type PolicyMessage = MessageTypes[typeof POLICY];

export const CSRF: HttpFilterManifest = {
  support: {
    [POLICY]: {
      otherwise: rejected(),
      fields: { filter_enabled: supported(), shadow_enabled: supported(), additional_origins: supported() },
    },
  },
  convert(message, at, conversion) {
    const settings: CsrfSettings = {
      counters: COUNTERS,
      policy: convertPolicy(message as PolicyMessage, at, conversion),
    };
    return { name: 'filters.http.csrf', settings, counters: Object.values(COUNTERS) };
  },
  ofRoutes: {
    type: POLICY,
    convert: (message, at, conversion) => convertPolicy(message as PolicyMessage, at, conversion),
  },
};

function convertPolicy(policy: PolicyMessage, at: string, { faults }: Conversion): CsrfPolicySettings {
  const origins = policy.additional_origins.map((matcher, index) =>
    convertStringMatcher(matcher, `${at}.additional_origins[${index}]`, faults),
  );
  return {
    enabled: runtimeFractionOf(policy.filter_enabled) ?? ALWAYS,
    shadowed: runtimeFractionOf(policy.shadow_enabled),
    origins: origins.filter((origin) => origin !== undefined),
  };
}
