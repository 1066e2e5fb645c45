// What the connections to the hosts of a cluster begin with: nothing, or a PROXY header.

import { MAX_TLV_BYTES, type ProxyHeaderSettings } from '../../base/proxy-header.ts';
import { ProxyProtocolConfig_Version as Version } from '../proto/generated/enums.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Cluster, ProxyProtocolConfig, ProxyProtocolUpstreamTransport } from './messages.ts';

const PROXY_TRANSPORT = 'proxy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport';

/** @returns nothing for plain connections, to be spread into settings. */
export function convertUpstreamTransport(
  { transport_socket: socket, transport_socket_matches: matches }: Cluster,
  at: string,
  faults: FaultSink,
): { readonly proxyHeader?: ProxyHeaderSettings } {
  const opened = openExtension(socket?.typed_config ?? null);
  if (opened?.typeName !== PROXY_TRANSPORT) return {};
  if (matches.length > 0) {
    faults.error(`${at}.transport_socket_matches`, 'cannot stand beside a transport_socket with a PROXY header');
  }
  const { config } = opened.message as ProxyProtocolUpstreamTransport;
  if (config === null) return { proxyHeader: { version: 1, tlvs: '' } };
  return { proxyHeader: convertHeader(config, `${at}.transport_socket.typed_config.config`, faults) };
}

function convertHeader({ version, added_tlvs: added }: ProxyProtocolConfig, at: string, faults: FaultSink) {
  if (version === Version.V1) {
    if (added.length > 0) faults.warning(`${at}.added_tlvs`, 'version 1 has no room for them');
    return { version: 1, tlvs: '' } as const;
  }
  const tlvs = added.map(({ type, value }) => {
    const head = Buffer.from([type, value.length >>> 8, value.length & 0xff]);
    // An empty one is no Buffer.
    return Buffer.concat([head, Buffer.from(value)]).toString('hex');
  });
  const text = tlvs.join('');
  const length = text.length / 2;
  if (length > MAX_TLV_BYTES)
    faults.error(`${at}.added_tlvs`, `take ${length} bytes; there is room for ${MAX_TLV_BYTES}`);
  return { version: 2, tlvs: text } as const;
}
