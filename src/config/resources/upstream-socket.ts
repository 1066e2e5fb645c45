// How upstream connections are opened: where they come from and how dead ones are noticed.

import type { IpAddress } from '../../base/address.ts';
import type { KeepaliveSettings } from '../../snapshot/index.ts';
import { convertSocketAddress } from './address.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Cluster } from './messages.ts';
import { valueOr } from './units.ts';

/** What applies where only some of the values are given. */
const LINUX_KEEPALIVE: KeepaliveSettings = { probes: 9, timeSeconds: 7200, intervalSeconds: 75 };

export interface UpstreamSocketSettings {
  readonly sourceAddress: IpAddress | undefined;
  readonly tcpKeepalive: KeepaliveSettings | undefined;
}

export function convertUpstreamSocket(message: Cluster, at: string, faults: FaultSink): UpstreamSocketSettings {
  return {
    sourceAddress: convertSourceAddress(message, `${at}.upstream_bind_config.source_address`, faults),
    tcpKeepalive: convertKeepalive(message),
  };
}

function convertSourceAddress(message: Cluster, at: string, faults: FaultSink): IpAddress | undefined {
  const source = message.upstream_bind_config?.source_address ?? null;
  return source === null ? undefined : convertSocketAddress(source, at, 'source', faults);
}

function convertKeepalive(message: Cluster): KeepaliveSettings | undefined {
  const keepalive = message.upstream_connection_options?.tcp_keepalive ?? null;
  if (keepalive === null) return undefined;
  return {
    probes: valueOr(keepalive.keepalive_probes, LINUX_KEEPALIVE.probes),
    timeSeconds: valueOr(keepalive.keepalive_time, LINUX_KEEPALIVE.timeSeconds),
    intervalSeconds: valueOr(keepalive.keepalive_interval, LINUX_KEEPALIVE.intervalSeconds),
  };
}
