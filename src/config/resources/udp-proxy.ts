// What a listener for datagrams says: UdpProxyConfig message → UdpProxySettings.

import type { UdpHashPolicy, UdpProxySettings } from '../../snapshot/index.ts';
import { SocketAddress_Protocol } from '../proto/generated/enums.ts';
import { quote } from '../source/node.ts';
import { convertAccessLogs, convertReportedLogs } from './access-log/access-log.ts';
import type { Conversion } from './conversion.ts';
import { type OpenedExtension, openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertMatchTree, type TreePlace } from './matching/match-tree.ts';
import type { AddressMessage, Listener, UdpProxyConfig, UdpRoute, UdpSocketConfig } from './messages.ts';
import { durationMsOr } from './units.ts';

const UDP_PROXY = 'proxy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig';
const ROUTE = 'proxy.extensions.filters.udp.udp_proxy.v3.Route';
const WILDCARDS: readonly string[] = ['0.0.0.0', '::'];
const DEFAULT_IDLE_TIMEOUT_MS = 60_000;
/** What goes over a network in one piece. */
const DEFAULT_MAX_DATAGRAM_BYTES = 1500;

/** By its addresses, which are of one kind all. */
export function isForDatagrams(message: Listener, at: string, faults: FaultSink): boolean {
  const first = isUdp(message.address);
  for (const [index, { address }] of message.additional_addresses.entries()) {
    if (address === null || isUdp(address) === first) continue;
    const text = `all addresses of a listener are of one protocol; the first is of ${first ? 'UDP' : 'TCP'}`;
    faults.error(`${at}.additional_addresses[${index}].address`, text);
  }
  return first;
}

function isUdp(address: AddressMessage | null): boolean {
  return address?.socket_address?.protocol === SocketAddress_Protocol.UDP;
}

/** A listener for connections has no use for what is meant for datagrams. */
export function checkNoDatagrams(message: Listener, at: string, faults: FaultSink): void {
  if (message.udp_listener_config !== null) {
    faults.error(`${at}.udp_listener_config`, 'needs an address whose protocol is UDP');
  }
  for (const [index, { typed_config: settings }] of message.listener_filters.entries()) {
    if (openExtension(settings)?.typeName !== UDP_PROXY) continue;
    faults.error(`${at}.listener_filters[${index}]`, 'udp_proxy needs an address whose protocol is UDP');
  }
}

/** @returns undefined where there is no udp_proxy that can be used; a fault says why. */
export function convertUdpListener(
  message: Listener,
  at: string,
  conversion: Conversion,
): UdpProxySettings | undefined {
  const { faults } = conversion;
  refuseConnectionFields(message, at, faults);
  const filters = message.listener_filters.map(({ typed_config: settings }) => openExtension(settings));
  for (const [index, { config_discovery: discovery }] of message.listener_filters.entries()) {
    const here = `${at}.listener_filters[${index}].config_discovery`;
    if (discovery !== null) faults.error(here, 'a filter of datagrams does not come by discovery: use typed_config');
  }
  const first = filters.findIndex((filter) => filter?.typeName === UDP_PROXY);
  for (const [index, filter] of filters.entries()) {
    if (filter === undefined || index === first) continue;
    faults.error(`${at}.listener_filters[${index}]`, 'a listener for datagrams has one listener filter, udp_proxy');
  }
  if (first === -1) {
    faults.error(`${at}.listener_filters`, 'a listener for datagrams needs the listener filter udp_proxy');
    return undefined;
  }
  const config = filters[first]!.message as UdpProxyConfig;
  const place = `${at}.listener_filters[${first}].typed_config`;
  const { udp_listener_config: socket } = message;
  return {
    statPrefix: config.stat_prefix,
    ...convertRouting(config, message, place, conversion),
    idleTimeoutMs: durationMsOr(config.idle_timeout, DEFAULT_IDLE_TIMEOUT_MS),
    hashPolicy: convertHashPolicy(config),
    picksPerDatagram: config.use_per_packet_load_balancing,
    maxClientDatagramBytes: maxBytes(socket?.downstream_socket_config ?? null),
    maxHostDatagramBytes: maxBytes(config.upstream_socket_config),
    accessLogs: convertAccessLogs(config.access_log, `${place}.access_log`, conversion),
    ...convertReportedLogs(config.access_log, `${place}.access_log`, conversion),
  };
}

function refuseConnectionFields(message: Listener, at: string, faults: FaultSink): void {
  const refuse = (isSet: boolean, field: string): void => {
    if (isSet) faults.error(`${at}.${field}`, 'a listener for datagrams has no connections');
  };
  refuse(message.filter_chains.length > 0, 'filter_chains');
  refuse(message.default_filter_chain !== null, 'default_filter_chain');
  refuse(message.filter_chain_matcher !== null, 'filter_chain_matcher');
  refuse(message.use_original_dst?.value === true, 'use_original_dst');
  refuse(message.transparent?.value === true, 'transparent');
  refuse(message.freebind?.value === true, 'freebind');
  refuse(message.socket_options.length > 0, 'socket_options');
  refuse(message.tcp_fast_open_queue_length !== null, 'tcp_fast_open_queue_length');
  refuse(message.bind_to_port?.value === false, 'bind_to_port');
  refuse(message.enable_reuse_port?.value === false, 'enable_reuse_port');
}

type Routing = Pick<UdpProxySettings, 'cluster' | 'matcher'>;

function convertRouting(config: UdpProxyConfig, message: Listener, at: string, conversion: Conversion): Routing {
  const { clusters, faults } = conversion;
  const { matcher } = config;
  if (matcher === null) {
    clusters.checkReference(config.cluster, `${at}.cluster`, faults);
    return { cluster: config.cluster };
  }
  const place = `${at}.matcher`;
  if (matcher.matcher_list === null && matcher.matcher_tree === null && matcher.on_no_match === null) {
    faults.error(`${place}.on_no_match`, 'needs an action, which says where datagrams go');
    return { cluster: '' };
  }
  const names = new Set<string>();
  const convertAction = ({ typeName, message: action }: OpenedExtension, here: string): string | undefined => {
    if (typeName !== ROUTE) {
      faults.error(here, `${quote(typeName)} is no action of udp_proxy: ${quote(ROUTE)} is`);
      return undefined;
    }
    const { cluster } = action as UdpRoute;
    clusters.checkReference(cluster, `${here}.cluster`, faults);
    names.add(cluster);
    return cluster;
  };
  const tree = convertMatchTree(matcher, place, { ...inputsOf(message), convertAction }, conversion);
  return { cluster: '', matcher: { tree, clusters: [...names] } };
}

/** Datagrams to all addresses of the machine do not say to which of them they have come. */
function inputsOf(message: Listener): Pick<TreePlace<string>, 'inputs' | 'otherInputs'> {
  const addresses = [message.address, ...message.additional_addresses.map(({ address }) => address)];
  const isWide = addresses.some((address) => WILDCARDS.includes(address?.socket_address?.address ?? ''));
  const inputs = new Set(['source-ip', 'source-port', 'destination-port', 'constant'] as const);
  return isWide
    ? { inputs, otherInputs: 'is no input here: datagrams to all addresses do not say to which of them they have come' }
    : {
        inputs: new Set([...inputs, 'destination-ip'] as const),
        otherInputs: 'is no input of datagrams: they have addresses and ports',
      };
}

function convertHashPolicy({ hash_policies: [policy] }: UdpProxyConfig): UdpHashPolicy | null {
  if (policy === undefined) return null;
  return policy.key === '' ? { kind: 'source-ip' } : { kind: 'key', key: policy.key };
}

function maxBytes(config: UdpSocketConfig | null): number {
  return Number(config?.max_rx_datagram_size?.value ?? DEFAULT_MAX_DATAGRAM_BYTES);
}
