// JwtAuthentication and PerRouteConfig messages → settings of the jwt_authn filter.

import { parseKeySet } from '../../../base/json-web-keys.ts';
import {
  type Conversion,
  convertConditions,
  convertPathMatch,
  convertStringMatcher,
  durationMsOr,
  type HttpFilterManifest,
  type MessageTypes,
  readDataSource,
  rejected,
  supported,
  supportedAs,
  supportedWhole,
  valueOr,
  warned,
} from '../../../config/index.ts';
import type {
  JwtAuthnSettings,
  JwtStatNames,
  LocalKeys,
  ProviderSettings,
  RemoteKeys,
  Requirement,
  RouteRequirement,
  RuleSettings,
} from './settings.ts';

const PACKAGE = 'proxy.extensions.filters.http.jwt_authn.v3';

type Message<Name extends string> = MessageTypes[`${typeof PACKAGE}.${Name}` & keyof MessageTypes];
type ProviderMessage = Message<'JwtProvider'>;
type RequirementMessage = Message<'JwtRequirement'>;

const DEFAULT_CACHE_MS = 600_000;
const DEFAULT_REFETCH_MS = 1000;
const DEFAULT_BACKOFF_MS = 1000;
const DEFAULT_SKEW_SECONDS = 60;
const DEFAULT_CACHED_TOKENS = 100;
const MAX_CACHED_TOKENS = 10_000;
const MAX_RETRIES = 1000;
const NO_EDITS: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade']);
const EVERYWHERE: Pick<ProviderSettings, 'fromHeaders' | 'fromParameters'> = {
  fromHeaders: [{ name: 'authorization', prefix: 'Bearer ' }],
  fromParameters: ['access_token'],
};

const whole = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, supported()]));

export const JWT_AUTHN: HttpFilterManifest = {
  support: {
    [`${PACKAGE}.JwtAuthentication`]: {
      otherwise: rejected(),
      fields: {
        ...whole(
          'providers',
          'rules',
          'bypass_cors_preflight',
          'requirement_map',
          'strip_failure_response',
          'stat_prefix',
        ),
        filter_state_rules: supported(),
      },
    },
    [`${PACKAGE}.JwtProvider`]: {
      otherwise: rejected(),
      fields: {
        ...whole('issuer', 'audiences', 'subjects', 'require_expiration', 'max_lifetime', 'remote_jwks'),
        ...whole('forward', 'from_headers', 'from_params', 'from_cookies', 'forward_payload_header'),
        ...whole('pad_forward_payload_header', 'payload_in_metadata', 'normalize_payload_in_metadata'),
        ...whole('header_in_metadata', 'jwt_cache_config', 'claim_to_headers', 'clear_route_cache'),
        clock_skew_seconds: supported('60 for 0'),
        local_jwks: supportedAs('jwks'),
        failed_status_in_metadata: supported(
          'its code and message; of a request without a token where there is one provider',
        ),
      },
    },
    'proxy.config.core.v3.DataSource (jwks)': {
      otherwise: rejected(),
      fields: {
        filename: supported('read once, when the configuration is loaded'),
        inline_bytes: supported(),
        inline_string: supported(),
        environment_variable: supported(),
        watched_directory: warned('keys are read once: serve them by remote_jwks to change them'),
      },
    },
    [`${PACKAGE}.JwtProvider.NormalizePayload`]: { otherwise: rejected(), fields: whole('space_delimited_claims') },
    [`${PACKAGE}.JwtCacheConfig`]: {
      otherwise: rejected(),
      fields: { jwt_cache_size: supported('100 for 0, 10,000 at most') },
    },
    [`${PACKAGE}.RemoteJwks`]: {
      otherwise: rejected(),
      fields: {
        http_uri: supported('each worker asks for itself'),
        cache_duration: supported(),
        async_fetch: supported('fetched at the start, and anew while those at hand go on for as long again'),
        retry_policy: supported(),
      },
    },
    [`${PACKAGE}.JwksAsyncFetch`]: {
      otherwise: rejected(),
      fields: {
        fast_listener: supportedWhole('always: requests wait for the first keys, listeners do not'),
        failed_refetch_duration: supported(),
      },
    },
    [`${PACKAGE}.JwtHeader`]: { otherwise: rejected(), fields: whole('name', 'value_prefix') },
    [`${PACKAGE}.ProviderWithAudiences`]: {
      otherwise: rejected(),
      fields: { provider_name: supported(), audiences: supported('those of the provider where there are none') },
    },
    [`${PACKAGE}.JwtRequirement`]: {
      otherwise: rejected(),
      fields: {
        ...whole('provider_name', 'provider_and_audiences', 'requires_any', 'requires_all'),
        allow_missing_or_failed: supportedWhole(),
        allow_missing: supportedWhole(),
        extract_only_without_validation: supportedWhole('of providers with the issuer that the token names'),
      },
    },
    [`${PACKAGE}.JwtRequirementOrList`]: { otherwise: rejected(), fields: whole('requirements') },
    [`${PACKAGE}.JwtRequirementAndList`]: { otherwise: rejected(), fields: whole('requirements') },
    [`${PACKAGE}.RequirementRule`]: { otherwise: rejected(), fields: whole('match', 'requires', 'requirement_name') },
    [`${PACKAGE}.JwtClaimToHeader`]: { otherwise: rejected(), fields: whole('header_name', 'claim_name') },
    [`${PACKAGE}.FilterStateRule`]: { otherwise: rejected(), fields: whole('name', 'requires') },
    [`${PACKAGE}.PerRouteConfig`]: { otherwise: rejected(), fields: whole('disabled', 'requirement_name') },
    'proxy.config.core.v3.HttpUri': {
      otherwise: rejected(),
      fields: {
        uri: supported('its path and its host; ext_authz asks only the cluster'),
        cluster: supported(),
        timeout: supported(),
      },
    },
  },
  convert(message, at, conversion) {
    const filter = message as Message<'JwtAuthentication'>;
    const known = new Set(Object.keys(filter.providers));
    const requirementAt = (said: RequirementMessage, place: string): Requirement =>
      convertRequirement(said, place, known, conversion);
    const named = new Map(
      Object.entries(filter.requirement_map).map(([name, said]) => [
        name,
        requirementAt(said, `${at}.requirement_map["${name}"]`),
      ]),
    );
    const stats = statNames(filter.stat_prefix);
    const settings: JwtAuthnSettings = {
      stats,
      providers: Object.entries(filter.providers).flatMap(
        ([name, said]) => convertProvider(name, said, `${at}.providers["${name}"]`, conversion) ?? [],
      ),
      rules: filter.rules.flatMap((rule, index) =>
        convertRule(rule, `${at}.rules[${index}]`, named, requirementAt, conversion),
      ),
      named,
      byState: stateRulesOf(filter.filter_state_rules, `${at}.filter_state_rules`, requirementAt),
      bypassesPreflight: filter.bypass_cors_preflight,
      isSilent: filter.strip_failure_response,
    };
    return { name: 'filters.http.jwt_authn', settings, counters: Object.values(stats) };
  },
  ofRoutes: {
    type: `${PACKAGE}.PerRouteConfig`,
    convert: (message): RouteRequirement | 'off' => {
      const { requirement_specifier: said, requirement_name: name } = message as Message<'PerRouteConfig'>;
      return said === 'requirement_name' ? { name } : 'off';
    },
  },
};

function stateRulesOf(
  rules: Message<'FilterStateRule'> | null,
  at: string,
  requirementAt: (said: RequirementMessage, place: string) => Requirement,
): JwtAuthnSettings['byState'] {
  if (rules === null) return null;
  const requirements = Object.entries(rules.requires).map(
    ([value, said]) => [value, requirementAt(said, `${at}.requires["${value}"]`)] as const,
  );
  return { key: rules.name, requirements: new Map(requirements) };
}

function statNames(prefix: string): JwtStatNames {
  const scope = prefix === '' ? 'jwt_authn' : `jwt_authn.${prefix}`;
  return {
    allowed: `${scope}.allowed`,
    denied: `${scope}.denied`,
    preflightBypassed: `${scope}.cors_preflight_bypassed`,
    fetchSuccess: `${scope}.jwks_fetch_success`,
    fetchFailed: `${scope}.jwks_fetch_failed`,
    cacheHit: `${scope}.jwt_cache_hit`,
    cacheMiss: `${scope}.jwt_cache_miss`,
  };
}

/** @returns undefined for one whose keys have faults. */
function convertProvider(
  name: string,
  said: ProviderMessage,
  at: string,
  conversion: Conversion,
): ProviderSettings | undefined {
  const { faults } = conversion;
  const keys =
    said.remote_jwks === null ? localKeys(said, at, conversion) : remoteKeys(said.remote_jwks, at, conversion);
  const subjects = said.subjects && convertStringMatcher(said.subjects, `${at}.subjects`, faults);
  const headerName = (written: string, place: string): string => {
    const header = written.toLowerCase();
    if (NO_EDITS.has(header) || header.startsWith(':')) faults.error(place, `"${written}" cannot be set here`);
    return header;
  };
  if (keys === undefined || subjects === undefined) return undefined;
  const cached = Math.min(said.jwt_cache_config?.jwt_cache_size || DEFAULT_CACHED_TOKENS, MAX_CACHED_TOKENS);
  const saysNoPlace = said.from_headers.length + said.from_params.length + said.from_cookies.length === 0;
  return {
    name,
    issuer: said.issuer,
    audiences: said.audiences,
    subjects,
    keys,
    fromHeaders: said.from_headers.map((header) => ({ name: header.name.toLowerCase(), prefix: header.value_prefix })),
    fromParameters: said.from_params,
    ...(saysNoPlace ? EVERYWHERE : {}),
    fromCookies: said.from_cookies,
    forwards: said.forward,
    payloadHeader: headerName(said.forward_payload_header, `${at}.forward_payload_header`),
    padsPayload: said.pad_forward_payload_header,
    payloadKey: said.payload_in_metadata,
    headerKey: said.header_in_metadata,
    failureKey: said.failed_status_in_metadata,
    spacedClaims: said.normalize_payload_in_metadata?.space_delimited_claims ?? [],
    skewSeconds: said.clock_skew_seconds || DEFAULT_SKEW_SECONDS,
    needsExpiration: said.require_expiration,
    maxLifetimeMs: durationMsOr(said.max_lifetime, Number.POSITIVE_INFINITY),
    cachedTokens: said.jwt_cache_config === null ? 0 : cached,
    claimHeaders: said.claim_to_headers.map(({ header_name: header, claim_name: claim }, index) => ({
      name: headerName(header, `${at}.claim_to_headers[${index}].header_name`),
      path: claim.split('.'),
    })),
    clearsRoute: said.clear_route_cache,
  };
}

function localKeys(said: ProviderMessage, at: string, conversion: Conversion): LocalKeys | undefined {
  const source = said.local_jwks;
  // Without any a field rule has a fault.
  if (source === null) return undefined;
  const place = `${at}.local_jwks`;
  const { faults } = conversion;
  const bytes = readDataSource(source, place, conversion);
  // Of what could not be read there is a fault.
  if (bytes.length === 0 && (source.specifier === 'filename' || source.specifier === 'environment_variable')) {
    return undefined;
  }
  const text = Buffer.from(bytes).toString();
  const { error } = parseKeySet(text);
  if (error === undefined) return { kind: 'local', text };
  faults.error(place, error);
  return undefined;
}

function remoteKeys(said: Message<'RemoteJwks'>, provider: string, conversion: Conversion): RemoteKeys | undefined {
  const { faults, clusters } = conversion;
  const at = `${provider}.remote_jwks`;
  const { http_uri: uri, async_fetch: eager, retry_policy: retry } = said;
  // Without it a field rule has a fault.
  if (uri === null) return undefined;
  clusters.checkReference(uri.cluster, `${at}.http_uri.cluster`, faults);
  const url = URL.canParse(uri.uri) ? new URL(uri.uri) : null;
  if (url === null || url.host === '' || !/^https?:$/.test(url.protocol)) {
    faults.error(`${at}.http_uri.uri`, `"${uri.uri}" is no URL of http or https`);
    return undefined;
  }
  const retries = retry === null ? 0 : valueOr(retry.num_retries, 1);
  if (retries > MAX_RETRIES)
    faults.error(`${at}.retry_policy.num_retries`, `${retries} exceeds the limit ${MAX_RETRIES}`);
  const backoffBaseMs = durationMsOr(retry?.retry_back_off?.base_interval ?? null, DEFAULT_BACKOFF_MS);
  const backoffMaxMs = durationMsOr(retry?.retry_back_off?.max_interval ?? null, backoffBaseMs * 10);
  if (backoffMaxMs < backoffBaseMs) {
    faults.error(`${at}.retry_policy.retry_back_off.max_interval`, 'is less than base_interval');
  }
  return {
    kind: 'remote',
    cluster: uri.cluster,
    host: url.host,
    path: `${url.pathname}${url.search}`,
    timeoutMs: durationMsOr(uri.timeout, 0),
    cacheMs: durationMsOr(said.cache_duration, DEFAULT_CACHE_MS),
    isEager: eager !== null,
    failedRefetchMs: durationMsOr(eager?.failed_refetch_duration ?? null, DEFAULT_REFETCH_MS),
    retries,
    backoffBaseMs,
    backoffMaxMs,
  };
}

function convertRule(
  { match, requirement_type: type, requires, requirement_name: name }: Message<'RequirementRule'>,
  at: string,
  named: ReadonlyMap<string, Requirement>,
  requirementAt: (said: RequirementMessage, place: string) => Requirement,
  { faults }: Conversion,
): readonly RuleSettings[] {
  // Without it a field rule has a fault.
  if (match === null) return [];
  const path = convertPathMatch(match, `${at}.match`, faults);
  const conditions = convertConditions(match, `${at}.match`, faults);
  let requirement: Requirement = { kind: 'nothing' };
  if (type === 'requirement_name') {
    const known = named.get(name);
    if (known === undefined) faults.error(`${at}.requirement_name`, `requirement_map has no "${name}"`);
    else requirement = known;
  } else if (requires !== null) requirement = requirementAt(requires, `${at}.requires`);
  return path === undefined ? [] : [{ match: path, conditions, requirement }];
}

function convertRequirement(
  said: RequirementMessage,
  at: string,
  known: ReadonlySet<string>,
  conversion: Conversion,
): Requirement {
  const provider = (name: string, audiences: readonly string[], place: string): Requirement => {
    if (!known.has(name)) {
      conversion.faults.error(place, `there is no provider "${name}"`);
      return { kind: 'nothing' };
    }
    return { kind: 'provider', provider: name, audiences: audiences.length === 0 ? null : audiences };
  };
  const list = (field: 'requires_any' | 'requires_all'): readonly Requirement[] =>
    said[field]!.requirements.map((part, index) =>
      convertRequirement(part, `${at}.${field}.requirements[${index}]`, known, conversion),
    );
  switch (said.requires_type) {
    case 'provider_name':
      return provider(said.provider_name, [], `${at}.provider_name`);
    case 'provider_and_audiences': {
      const { provider_name: name, audiences } = said.provider_and_audiences!;
      return provider(name, audiences, `${at}.provider_and_audiences.provider_name`);
    }
    case 'requires_any':
      return { kind: 'any', of: list('requires_any') };
    case 'requires_all':
      return { kind: 'all', of: list('requires_all') };
    case 'allow_missing_or_failed':
      return { kind: 'missing-or-failed' };
    case 'allow_missing':
      return { kind: 'missing' };
    case 'extract_only_without_validation':
      return { kind: 'unverified' };
    default:
      return { kind: 'nothing' };
  }
}
