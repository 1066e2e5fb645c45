// UpstreamHttpProtocolOptions messages: which names TLS to upstreams goes by that requests bring themselves.

import type { RequestServerName } from '../../snapshot/index.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Cluster } from './messages.ts';
import { upstreamHttpOptions } from './upstream-options.ts';

/** @returns nothing for none, to be spread into settings. */
export function convertRequestServerName(
  cluster: Cluster,
  at: string,
  faults: FaultSink,
): { readonly requestServerName?: RequestServerName } {
  const found = upstreamHttpOptions(cluster, at);
  if (found === undefined) return {};
  const { auto_sni: isSent, auto_san_validation: isVerified, override_auto_sni_header: header } = found.message;
  if (!isSent && !isVerified) {
    if (header !== '') faults.warning(`${found.at}.override_auto_sni_header`, 'takes effect with auto_sni alone');
    return {};
  }
  return { requestServerName: { header: header.toLowerCase(), isSent, isVerified } };
}
