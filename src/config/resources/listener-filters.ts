// ListenerFilter messages → ListenerFilterSettings, and the older switches that stand for some of them.

import type {
  ConfiguredListenerFilter,
  ConnectionPredicate,
  ListenerFilterSettings,
  ListenerRateLimitSettings,
  OwnListenerFilterSettings,
  ProxyProtocolSettings,
  TlsInspectorSettings,
  TlvRule,
} from '../../snapshot/index.ts';
import { ProxyProtocolConfig_Version as Version } from '../proto/generated/enums.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { fieldPath } from '../source/field-path.ts';
import type { Conversion } from './conversion.ts';
import { convertDiscoveredFilter, type FilterReading } from './discovered-filter.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import { treeAsksForClientHello } from './filter-chain-matcher.ts';
import type { FilterChain, FilterChainMatchMessage, Listener, ProxyProtocol, TlsInspector } from './messages.ts';
import { convertPassedTlvs } from './proxy-tlvs.ts';
import { runtimeFlagOf } from './runtime-settings.ts';
import { convertTokenBucket } from './token-bucket.ts';
import { valueOr } from './units.ts';

const ORIGINAL_DST = 'proxy.extensions.filters.listener.original_dst.v3.OriginalDst';
const PROXY_PROTOCOL = 'proxy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol';
const TLS_INSPECTOR = 'proxy.extensions.filters.listener.tls_inspector.v3.TlsInspector';
const RATE_LIMIT = 'proxy.extensions.filters.listener.local_ratelimit.v3.LocalRateLimit';
const HTTP_INSPECTOR = 'proxy.extensions.filters.listener.http_inspector.v3.HttpInspector';
/** Where values go that no rule puts elsewhere. */
const TLV_NAMESPACE = 'envoy.filters.listener.proxy_protocol';
const DEFAULT_MAX_CLIENT_HELLO_BYTES = 16 * 1024;
/** What is added for chains that cannot be told apart otherwise. */
const PLAIN_TLS_INSPECTOR: TlsInspectorSettings = {
  kind: 'tls-inspector',
  maxClientHelloBytes: DEFAULT_MAX_CLIENT_HELLO_BYTES,
  refusesMalformed: false,
  makesJa3: false,
  makesJa4: false,
};
/** What use_proxy_proto asks for. */
const PLAIN_PROXY_PROTOCOL: ProxyProtocolSettings = {
  kind: 'proxy-protocol',
  isOptional: false,
  acceptsV1: true,
  acceptsV2: true,
  statPrefix: '',
  rules: [],
};

type ListenerFilterMessage = Listener['listener_filters'][number];
type ListenerFilterPredicate = NonNullable<ListenerFilterMessage['filter_disabled']>;

/** By the messages that configure them. */
const CONVERSIONS: Readonly<
  Record<string, (message: object, at: string, faults: FaultSink) => OwnListenerFilterSettings>
> = {
  [ORIGINAL_DST]: () => ({ kind: 'original-dst' }),
  [PROXY_PROTOCOL]: (message, at, faults) => convertProxyProtocol(message as ProxyProtocol, at, faults),
  [TLS_INSPECTOR]: (message) => convertTlsInspector(message as TlsInspector),
  [RATE_LIMIT]: (message, at, faults) => convertRateLimit(message as MessageTypes[typeof RATE_LIMIT], at, faults),
  [HTTP_INSPECTOR]: () => ({ kind: 'http-inspector' }),
};

export const LISTENER_FILTERS: FilterReading<ConfiguredListenerFilter> = {
  refuse: (typeName) =>
    Object.hasOwn(CONVERSIONS, typeName) ? undefined : 'configures no listener filter of this build for connections',
  convert: (typeName, message, at, _name, { faults }) => ({ filter: CONVERSIONS[typeName]!(message, at, faults) }),
};

/** Filters that this build lacks are left out: the support table has refused them. */
export function convertListenerFilters(
  message: Listener,
  at: string,
  conversion: Conversion,
): readonly ListenerFilterSettings[] {
  const { faults } = conversion;
  const filters = message.listener_filters.flatMap((filter, index): ListenerFilterSettings[] => {
    const { filter_disabled: disabled } = filter;
    const own = convertListenerFilter(filter, `${at}.listener_filters[${index}]`, conversion);
    if (own === undefined) return [];
    return [disabled === null ? own : { ...own, disabledFor: convertPredicate(disabled) }];
  });
  const has = (type: string, wanted: ListenerFilterSettings['kind']): boolean =>
    filters.some((filter) =>
      filter.kind === 'discovered' ? filter.discovered.types.includes(type) : filter.kind === wanted,
    );
  const hasHeader = has(PROXY_PROTOCOL, 'proxy-protocol');
  if (usesProxyProto(message.filter_chains, at, faults) && !hasHeader) filters.push(PLAIN_PROXY_PROTOCOL);
  const hasDestination = has(ORIGINAL_DST, 'original-dst');
  if (valueOr(message.use_original_dst, false) && !hasDestination) filters.push({ kind: 'original-dst' });
  const inspected = choiceByClientHello(message);
  if (inspected !== undefined && !has(TLS_INSPECTOR, 'tls-inspector')) {
    const why = 'is decided by what TLS clients announce, so the listener filter tls_inspector is added';
    faults.warning(fieldPath(at, inspected), why);
    filters.push(PLAIN_TLS_INSPECTOR);
  }
  return filters;
}

/** @returns undefined for one that this build lacks, or of which a fault says what is wrong. */
function convertListenerFilter(
  { name, typed_config, config_discovery }: ListenerFilterMessage,
  at: string,
  conversion: Conversion,
): ListenerFilterSettings | undefined {
  if (config_discovery !== null) {
    const place = `${at}.config_discovery`;
    const discovered = convertDiscoveredFilter(name, config_discovery, place, conversion, LISTENER_FILTERS);
    return discovered && { kind: 'discovered', name, discovered };
  }
  const opened = openExtension(typed_config);
  const convert = opened && Object.hasOwn(CONVERSIONS, opened.typeName) ? CONVERSIONS[opened.typeName] : undefined;
  return convert?.(opened!.message, `${at}.typed_config`, conversion.faults);
}

/** Path in the listener of the first choice of a filter chain by what only a TLS inspector finds out; undefined without any. */
export function choiceByClientHello({
  filter_chains: chains,
  filter_chain_matcher: matcher,
}: Listener): string | undefined {
  if (matcher !== null && treeAsksForClientHello(matcher)) return 'filter_chain_matcher';
  const index = chains.findIndex(({ filter_chain_match: match }) => match !== null && asksForClientHello(match));
  return index === -1 ? undefined : `filter_chains[${index}].filter_chain_match`;
}

function asksForClientHello(match: FilterChainMatchMessage): boolean {
  if (match.transport_protocol !== '') return match.transport_protocol === 'tls';
  return match.server_names.length > 0 || match.application_protocols.length > 0;
}

function convertTlsInspector(message: TlsInspector): TlsInspectorSettings {
  return {
    kind: 'tls-inspector',
    maxClientHelloBytes: valueOr(message.max_client_hello_size, DEFAULT_MAX_CLIENT_HELLO_BYTES),
    refusesMalformed: message.close_connection_on_client_hello_parsing_errors,
    makesJa3: valueOr(message.enable_ja3_fingerprinting, false),
    makesJa4: valueOr(message.enable_ja4_fingerprinting, false),
  };
}

function convertRateLimit(
  message: MessageTypes[typeof RATE_LIMIT],
  at: string,
  faults: FaultSink,
): ListenerRateLimitSettings {
  return {
    kind: 'local-rate-limit',
    statPrefix: message.stat_prefix,
    bucket: convertTokenBucket(message.token_bucket, `${at}.token_bucket`, faults),
    enabled: runtimeFlagOf(message.runtime_enabled, true),
  };
}

function convertProxyProtocol(message: ProxyProtocol, at: string, faults: FaultSink): ProxyProtocolSettings {
  const refused = message.disallowed_versions;
  const acceptsV1 = !refused.includes(Version.V1);
  const acceptsV2 = !refused.includes(Version.V2);
  if (!acceptsV1 && !acceptsV2) faults.error(`${at}.disallowed_versions`, 'leaves no version that is allowed');
  return {
    kind: 'proxy-protocol',
    isOptional: message.allow_requests_without_proxy_protocol,
    acceptsV1,
    acceptsV2,
    statPrefix: message.stat_prefix,
    rules: message.rules.flatMap((rule) => convertRule(rule) ?? []),
    ...convertPassedTlvs(message.pass_through_tlvs),
  };
}

/** @returns undefined for one that keeps nothing. */
function convertRule({ tlv_type: type, on_tlv_present: target }: ProxyProtocol['rules'][number]): TlvRule | undefined {
  if (target === null) return undefined;
  return { type, namespace: target.metadata_namespace || TLV_NAMESPACE, key: target.key };
}

function convertPredicate(message: ListenerFilterPredicate): ConnectionPredicate {
  switch (message.rule) {
    case 'or_match':
      return { kind: 'one-of', rules: message.or_match!.rules.map(convertPredicate) };
    case 'and_match':
      return { kind: 'all', rules: message.and_match!.rules.map(convertPredicate) };
    case 'not_match':
      return { kind: 'not', rule: convertPredicate(message.not_match!) };
    case 'destination_port_range': {
      const { start, end } = message.destination_port_range!;
      return { kind: 'port', start, end };
    }
    default:
      return { kind: 'any' };
  }
}

/** The header comes before a filter chain can be chosen: the first chain speaks for all of them. */
function usesProxyProto(chains: readonly FilterChain[], at: string, faults: FaultSink): boolean {
  const [first, ...others] = chains.map((chain) => valueOr(chain.use_proxy_proto, false));
  const different = others.indexOf(!first);
  if (different !== -1) {
    const text = `holds for the whole listener, which is ${first} by its first filter chain`;
    faults.warning(`${at}.filter_chains[${different + 1}].use_proxy_proto`, text);
  }
  return first === true;
}
