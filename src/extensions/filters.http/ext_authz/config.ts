// ExtAuthz and ExtAuthzPerRoute messages → settings of the ext_authz filter.

import {
  type Conversion,
  convertMetadataMatch,
  convertOwnRetries,
  convertStringMatcher,
  durationMsOr,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  runtimeFlagOf,
  runtimeFractionOf,
  supported,
  supportedWhole,
  valueOr,
  warned,
} from '../../../config/index.ts';
import type { StringMatch } from '../../../snapshot/index.ts';
import { convertGrpcTarget } from '../../grpc-service-config.ts';
import { HTTP_RETRIES } from '../../own-retries-config.ts';
import { labelsOf } from './labels-config.ts';
import type {
  BodySettings,
  CheckSettings,
  ExtAuthzSettings,
  ExtAuthzStatNames,
  GrpcServiceSettings,
  HttpServiceSettings,
  NameMatches,
} from './settings.ts';

const PACKAGE = 'proxy.extensions.filters.http.ext_authz.v3';
const EXT_AUTHZ = `${PACKAGE}.ExtAuthz`;
const PER_ROUTE = `${PACKAGE}.ExtAuthzPerRoute`;

type Message<Name extends string> = MessageTypes[`proxy.extensions.filters.http.ext_authz.v3.${Name}` &
  keyof MessageTypes];
type MatcherList = MessageTypes['proxy.type.matcher.v3.ListStringMatcher'];

const DEFAULT_TIMEOUT_MS = 200;
const FORBIDDEN = 403;
/** Number of ApiVersion; a field rule refuses others. */
const V2 = 1;
const ONE_SERVICE = 'write another ext_authz filter with this service, and turn off one of them by route';
const NO_TYPES = 'this build has no typed metadata';

export const EXT_AUTHZ_MANIFEST: HttpFilterManifest = {
  support: {
    [EXT_AUTHZ]: {
      otherwise: rejected(),
      fields: {
        grpc_service: supported('envoy_grpc only'),
        http_service: supported(),
        failure_mode_allow: supported(),
        with_request_body: supported(),
        clear_route_cache: supported(),
        status_on_error: supported(),
        metadata_context_namespaces: supported(),
        filter_enabled: supported(),
        filter_enabled_metadata: supportedWhole('of what the filters before have said'),
        bootstrap_metadata_labels_key: supported('labels of the destination, for services of gRPC'),
        include_peer_certificate: supported(),
        deny_at_disable: supported(),
        transport_api_version: supported('AUTO is V3'),
        stat_prefix: supported(),
        typed_metadata_context_namespaces: rejected(NO_TYPES),
        allowed_headers: supported(),
        include_tls_session: supported(),
        failure_mode_allow_header_add: supported(),
        charge_cluster_response_stats: supported('in `cluster.<name>.ext_authz.*`'),
        route_metadata_context_namespaces: supported(),
        route_typed_metadata_context_namespaces: rejected(NO_TYPES),
        encode_raw_headers: supported(),
        validate_mutations: supported(),
        disallowed_headers: supported(),
        enable_dynamic_metadata_ingestion: supported(),
        filter_metadata: rejected('context_extensions of routes say something to the service'),
        emit_filter_state_stats: warned('stats and spans of its cluster tell how long a service takes'),
        decoder_header_mutation_rules: rejected(
          'the service is trusted with all headers but those that frame messages; it has to leave alone what it may not change',
        ),
      },
    },
    [`${PACKAGE}.BufferSettings`]: {
      otherwise: rejected(),
      fields: { max_request_bytes: supported(), allow_partial_message: supported(), pack_as_bytes: supported() },
    },
    [`${PACKAGE}.HttpService`]: {
      otherwise: rejected(),
      fields: {
        server_uri: supported(),
        path_prefix: supported(),
        authorization_request: supported(),
        authorization_response: supported(),
        retry_policy: supported('5xx, gateway-error, connect-failure and reset unless it names others'),
      },
    },
    [`${PACKAGE}.AuthorizationRequest`]: {
      otherwise: rejected(),
      fields: { allowed_headers: supported(), headers_to_add: supported() },
    },
    [`${PACKAGE}.AuthorizationResponse`]: {
      otherwise: rejected(),
      fields: {
        allowed_upstream_headers: supported(),
        allowed_client_headers: supported(),
        allowed_upstream_headers_to_append: supported(),
        allowed_client_headers_on_success: supported(),
        dynamic_metadata_from_headers: supported(),
      },
    },
    [PER_ROUTE]: { otherwise: rejected(), fields: { disabled: supported(), check_settings: supported() } },
    [`${PACKAGE}.CheckSettings`]: {
      otherwise: rejected(),
      fields: {
        context_extensions: supported(),
        disable_request_body_buffering: supported(),
        with_request_body: supported(),
        grpc_service: rejected(ONE_SERVICE),
        http_service: rejected(ONE_SERVICE),
      },
    },
    'proxy.type.v3.HttpStatus': { otherwise: rejected(), fields: { code: supported() } },
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
    const filter = message as Message<'ExtAuthz'>;
    const service = serviceOf(filter, at, conversion);
    if (service === undefined) return undefined;
    const stats = statNames(filter.stat_prefix);
    const list = (matchers: MatcherList | null, field: string) => namesOf(matchers, `${at}.${field}`, conversion);
    const { filter_enabled_metadata: enabledMetadata } = filter;
    const olderAllowed = filter.http_service?.authorization_request?.allowed_headers ?? null;
    const settings: ExtAuthzSettings = {
      stats,
      service,
      failsOpen: filter.failure_mode_allow,
      tellsFailOpen: filter.failure_mode_allow_header_add,
      body: filter.with_request_body && bodyOf(filter.with_request_body),
      clearsRoute: filter.clear_route_cache,
      statusOnError: filter.status_on_error?.code ?? FORBIDDEN,
      enabled: runtimeFractionOf(filter.filter_enabled),
      enabledMetadata:
        enabledMetadata && convertMetadataMatch(enabledMetadata, `${at}.filter_enabled_metadata`, conversion.faults),
      deniesDisabled: runtimeFlagOf(filter.deny_at_disable, false),
      allowedHeaders:
        list(filter.allowed_headers, 'allowed_headers') ??
        list(olderAllowed, 'http_service.authorization_request.allowed_headers'),
      disallowedHeaders: list(filter.disallowed_headers, 'disallowed_headers'),
      validates: filter.validate_mutations,
      countsByCluster: valueOr(filter.charge_cluster_response_stats, true),
    };
    return { name: 'filters.http.ext_authz', settings, counters: Object.values(stats) };
  },
  ofRoutes: {
    type: PER_ROUTE,
    convert: (message) => {
      const { check_settings: check } = message as Message<'ExtAuthzPerRoute'>;
      return check === null ? 'off' : checkOf(check);
    },
  },
};

function statNames(prefix: string): ExtAuthzStatNames {
  const scope = prefix === '' ? 'ext_authz' : `ext_authz.${prefix}`;
  return {
    ok: `${scope}.ok`,
    denied: `${scope}.denied`,
    error: `${scope}.error`,
    disabled: `${scope}.disabled`,
    failureModeAllowed: `${scope}.failure_mode_allowed`,
    invalid: `${scope}.invalid`,
  };
}

function serviceOf(
  filter: Message<'ExtAuthz'>,
  at: string,
  conversion: Conversion,
): HttpServiceSettings | GrpcServiceSettings | undefined {
  if (filter.services === 'http_service') return httpServiceOf(filter.http_service!, `${at}.http_service`, conversion);
  if (filter.services === 'grpc_service') return grpcServiceOf(filter, `${at}.grpc_service`, conversion);
  conversion.faults.error(at, 'names no service: grpc_service or http_service is required');
  return undefined;
}

function httpServiceOf(
  service: Message<'HttpService'>,
  at: string,
  conversion: Conversion,
): HttpServiceSettings | undefined {
  const { server_uri: uri, authorization_request: asked, authorization_response: answered } = service;
  // Without it a field rule has a fault.
  if (uri === null) return undefined;
  conversion.clusters.checkReference(uri.cluster, `${at}.server_uri.cluster`, conversion.faults);
  if (service.path_prefix !== '' && !service.path_prefix.startsWith('/')) {
    conversion.faults.error(
      `${at}.path_prefix`,
      `has to begin with a slash, not ${JSON.stringify(service.path_prefix)}`,
    );
  }
  const list = (field: keyof Message<'AuthorizationResponse'>) =>
    namesOf((answered?.[field] as MatcherList | null) ?? null, `${at}.authorization_response.${field}`, conversion);
  return {
    kind: 'http',
    cluster: uri.cluster,
    timeoutMs: durationMsOr(uri.timeout, DEFAULT_TIMEOUT_MS),
    retry: convertOwnRetries(service.retry_policy, HTTP_RETRIES, `${at}.retry_policy`, conversion.faults),
    pathPrefix: service.path_prefix,
    add: (asked?.headers_to_add ?? []).map(({ key, value }) => [key.toLowerCase(), value] as const),
    toUpstream: list('allowed_upstream_headers'),
    appendedToUpstream: list('allowed_upstream_headers_to_append'),
    toClient: list('allowed_client_headers'),
    toClientOnSuccess: list('allowed_client_headers_on_success'),
    toMetadata: list('dynamic_metadata_from_headers'),
  };
}

function grpcServiceOf(
  filter: Message<'ExtAuthz'>,
  at: string,
  conversion: Conversion,
): GrpcServiceSettings | undefined {
  const service = filter.grpc_service!;
  const target = convertGrpcTarget(service, at, durationMsOr(service.timeout, DEFAULT_TIMEOUT_MS), conversion);
  if (target === undefined) return undefined;
  return {
    kind: 'grpc',
    ...target,
    generation: filter.transport_api_version === V2 ? 'v2' : 'v3',
    includesCertificate: filter.include_peer_certificate,
    includesTlsSession: filter.include_tls_session,
    labels: labelsOf(filter.bootstrap_metadata_labels_key, conversion),
    hasRawHeaders: filter.encode_raw_headers,
    metadataNamespaces: filter.metadata_context_namespaces,
    routeMetadataNamespaces: filter.route_metadata_context_namespaces,
    keepsMetadata: valueOr(filter.enable_dynamic_metadata_ingestion, true),
  };
}

function bodyOf(message: Message<'BufferSettings'>): BodySettings {
  return {
    maxBytes: message.max_request_bytes,
    allowsPart: message.allow_partial_message,
    isRaw: message.pack_as_bytes,
  };
}

function checkOf(message: Message<'CheckSettings'>): CheckSettings {
  return {
    context: { ...message.context_extensions },
    ignoresBody: message.disable_request_body_buffering,
    body: message.with_request_body && bodyOf(message.with_request_body),
  };
}

function namesOf(list: MatcherList | null, at: string, { faults }: Conversion): NameMatches {
  if (list === null) return null;
  const matches = list.patterns.map((matcher, index) =>
    convertStringMatcher(matcher, `${at}.patterns[${index}]`, faults),
  );
  return matches.filter((match): match is StringMatch => match !== undefined);
}
