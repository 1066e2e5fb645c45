// ListenerFilter messages → ListenerFilterSettings, and the older switches that stand for some of them.

import type { ListenerFilterSettings, ProxyProtocolSettings } from '../../snapshot/index.ts';
import { ProxyProtocolConfig_Version as Version } from '../proto/generated/enums.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import type { FilterChain, Listener, ProxyProtocol } from './messages.ts';
import { valueOr } from './units.ts';

const ORIGINAL_DST = 'proxy.extensions.filters.listener.original_dst.v3.OriginalDst';
const PROXY_PROTOCOL = 'proxy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol';
/** What use_proxy_proto asks for. */
const PLAIN_PROXY_PROTOCOL: ProxyProtocolSettings = {
  kind: 'proxy-protocol',
  isOptional: false,
  acceptsV1: true,
  acceptsV2: true,
  statPrefix: '',
};

/** Filters that this build lacks are left out: the support table has refused them. */
export function convertListenerFilters(
  message: Listener,
  at: string,
  faults: FaultSink,
): readonly ListenerFilterSettings[] {
  const filters = message.listener_filters.flatMap((filter, index): ListenerFilterSettings[] => {
    const opened = openExtension(filter.typed_config);
    if (opened?.typeName === ORIGINAL_DST) return [{ kind: 'original-dst' }];
    if (opened?.typeName !== PROXY_PROTOCOL) return [];
    const settingsAt = `${at}.listener_filters[${index}].typed_config`;
    return [convertProxyProtocol(opened.message as ProxyProtocol, settingsAt, faults)];
  });
  const has = (wanted: ListenerFilterSettings['kind']): boolean => filters.some(({ kind }) => kind === wanted);
  if (usesProxyProto(message.filter_chains, at, faults) && !has('proxy-protocol')) filters.push(PLAIN_PROXY_PROTOCOL);
  if (valueOr(message.use_original_dst, false) && !has('original-dst')) filters.push({ kind: 'original-dst' });
  return filters;
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
  };
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
