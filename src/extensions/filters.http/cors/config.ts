// Cors and CorsPolicy messages → settings of the cors filter. The policies stand on routes, virtual hosts and tables, in
// typed_per_filter_config or in the field `cors` of routes and virtual hosts from before.

import {
  type Conversion,
  type CorsPolicyMessage,
  convertStringMatcher,
  type HttpFilterManifest,
  type OlderCorsPolicyMessage,
  regexMatch,
  rejected,
  runtimeFractionOf,
  supported,
} from '../../../config/index.ts';
import type { Fraction, RuntimeSetting, StringMatch } from '../../../snapshot/index.ts';
import type { CorsPolicySettings, CorsSettings } from './settings.ts';

const POLICY = 'proxy.extensions.filters.http.cors.v3.CorsPolicy';
/** Behind `http.<stat_prefix>.`. */
const COUNTERS: CorsSettings = { validCounter: 'cors.origin_valid', invalidCounter: 'cors.origin_invalid' };
const NEVER: RuntimeSetting<Fraction> = { key: '', default: { numerator: 0, denominator: 100 } };

export const CORS: HttpFilterManifest = {
  support: {
    'proxy.extensions.filters.http.cors.v3.Cors': { otherwise: rejected(), fields: {} },
    [POLICY]: { otherwise: supported(), fields: {} },
  },
  convert: () => ({ name: 'filters.http.cors', settings: COUNTERS, counters: Object.values(COUNTERS) }),
  ofRoutes: {
    type: POLICY,
    convert: (message, at, conversion) => convertPolicy(message as CorsPolicyMessage, [], at, conversion),
    olderField: {
      name: 'cors',
      convert: (message, at, conversion) => convertOlderPolicy(message as OlderCorsPolicyMessage, at, conversion),
    },
  },
};

function convertOlderPolicy(policy: OlderCorsPolicyMessage, at: string, conversion: Conversion): CorsPolicySettings {
  const texts = policy.allow_origin.map((value): StringMatch => ({ kind: 'exact', value, ignoresCase: false }));
  const patterns = policy.allow_origin_regex.map((pattern, index) =>
    regexMatch(pattern, `${at}.allow_origin_regex[${index}]`, conversion.faults),
  );
  const origins = [...texts, ...patterns.filter((match) => match !== undefined)];
  const settings = convertPolicy(policy, origins, at, conversion);
  return policy.enabled?.value === false ? { ...settings, enabled: NEVER } : settings;
}

function convertPolicy(
  policy: CorsPolicyMessage,
  origins: readonly StringMatch[],
  at: string,
  { faults }: Conversion,
): CorsPolicySettings {
  const matches = policy.allow_origin_string_match.map((matcher, index) =>
    convertStringMatcher(matcher, `${at}.allow_origin_string_match[${index}]`, faults),
  );
  return {
    origins: [...origins, ...matches.filter((match) => match !== undefined)],
    methods: policy.allow_methods,
    headers: policy.allow_headers,
    exposedHeaders: policy.expose_headers,
    maxAge: policy.max_age,
    allowsCredentials: policy.allow_credentials?.value ?? null,
    allowsPrivateNetwork: policy.allow_private_network_access?.value ?? null,
    forwardsStrangers: policy.forward_not_matching_preflights?.value ?? null,
    enabled: runtimeFractionOf(policy.filter_enabled),
    shadowed: runtimeFractionOf(policy.shadow_enabled),
  };
}
