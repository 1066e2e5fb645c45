// How upstream connections are opened: where they come from and how dead ones are noticed.

import type { IpAddress } from '../../base/address.ts';
import type { KeepaliveSettings } from '../../snapshot/index.ts';
import { convertSocketAddress } from './address.ts';
import type { Conversion } from './conversion.ts';
import type { FaultSink } from './fault-sink.ts';
import type { BindConfig, Cluster } from './messages.ts';
import { valueOr } from './units.ts';

/** What applies where only some of the values are given. */
const LINUX_KEEPALIVE: KeepaliveSettings = { probes: 9, timeSeconds: 7200, intervalSeconds: 75 };

export interface UpstreamSocketSettings {
  readonly sourceAddress: IpAddress | undefined;
  readonly tcpKeepalive: KeepaliveSettings | undefined;
}

export function convertUpstreamSocket(message: Cluster, at: string, conversion: Conversion): UpstreamSocketSettings {
  return {
    sourceAddress: convertSourceAddress(message, `${at}.upstream_bind_config`, conversion),
    tcpKeepalive: convertKeepalive(message),
  };
}

function convertSourceAddress(
  message: Cluster,
  at: string,
  { defaultSource, faults }: Conversion,
): IpAddress | undefined {
  // Nothing of it is the bootstrap's when the cluster has a configuration of its own.
  if (message.upstream_bind_config === null) return defaultSource;
  return convertBindConfig(message.upstream_bind_config, at, faults);
}

/** @returns undefined for an address that leaves the choice to the system: an empty one with port 0. */
export function convertBindConfig(
  { source_address: source }: BindConfig,
  at: string,
  faults: FaultSink,
): IpAddress | undefined {
  return source === null ? undefined : convertSocketAddress(source, `${at}.source_address`, 'source', faults);
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
