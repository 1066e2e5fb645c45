// The fields of a connection manager that say what upstreams are told of clients → ForwardingSettings.

import type { ForwardingSettings, SchemePorts } from '../../snapshot/index.ts';
import { quote } from '../source/node.ts';
import { convertCidrRanges } from './cidr.ts';
import type { Conversion } from './conversion.ts';
import type { FaultSink } from './fault-sink.ts';
import type { HttpConnectionManager } from './messages.ts';
import { convertOriginDetection } from './origin-detection.ts';
import { valueOr } from './units.ts';

const MAX_PORT = 65_535;

/** @param at path of the connection manager. */
export function convertForwarding(
  message: HttpConnectionManager,
  at: string,
  { faults, localCluster = '', localNode = '' }: Conversion,
): ForwardingSettings {
  const { internal_address_config: internal } = message;
  const addsUserAgent = valueOr(message.add_user_agent, false);
  if (addsUserAgent && localCluster === '') {
    faults.warning(`${at}.add_user_agent`, 'there is no node.cluster, and no --service-cluster, to name');
  }
  return {
    internalAddresses: internal && {
      unixSockets: internal.unix_sockets,
      ranges: convertCidrRanges(internal.cidr_ranges, `${at}.internal_address_config.cidr_ranges`, faults),
    },
    serviceName: addsUserAgent ? { cluster: localCluster, node: localNode } : null,
    appendsPort: message.append_x_forwarded_port,
    mapsIpv4: message.represent_ipv4_remote_address_as_ipv4_mapped_ipv6,
    scheme: schemeOf(message, `${at}.scheme_header_transformation.scheme_to_overwrite`, faults),
    matchesUpstreamScheme: matchesUpstream(message),
    schemePorts: schemePortsOf(message, `${at}.forward_proto_config`, faults),
    answersRequestId: message.always_set_request_id_in_response,
    ...convertOriginDetection(message, at, faults),
  };
}

function schemeOf(message: HttpConnectionManager, at: string, faults: FaultSink): ForwardingSettings['scheme'] {
  const scheme = message.scheme_header_transformation?.scheme_to_overwrite ?? '';
  if (scheme === 'http' || scheme === 'https' || scheme === '') return scheme === '' ? null : scheme;
  faults.error(at, `${quote(scheme)} is neither "http" nor "https"`);
  return null;
}

/** A scheme by order goes first. */
function matchesUpstream({ scheme_header_transformation: scheme }: HttpConnectionManager): boolean {
  return scheme?.match_upstream === true && scheme.scheme_to_overwrite === '';
}

function schemePortsOf(message: HttpConnectionManager, at: string, faults: FaultSink): SchemePorts | null {
  const config = message.forward_proto_config;
  if (config === null) return null;
  const { https_destination_ports: https, http_destination_ports: http } = config;
  for (const [name, ports] of Object.entries({ https_destination_ports: https, http_destination_ports: http })) {
    for (const [index, port] of ports.entries()) {
      if (port < 1 || port > MAX_PORT) faults.error(`${at}.${name}[${index}]`, `${port} is no port`);
    }
  }
  for (const [index, port] of http.entries()) {
    if (https.includes(port)) faults.error(`${at}.http_destination_ports[${index}]`, `${port} is also a port of HTTPS`);
  }
  return { https, http };
}
