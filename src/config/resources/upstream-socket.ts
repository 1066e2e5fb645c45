// How upstream connections are opened: where they come from and how dead ones are noticed.

import type { ConnectionOrigin } from '../../base/own-sockets.ts';
import type { KeepaliveSettings } from '../../snapshot/index.ts';
import { convertBindConfig, originOf } from './bind-config.ts';
import type { Conversion } from './conversion.ts';
import type { Cluster } from './messages.ts';
import { valueOr } from './units.ts';

/** What applies where only some of the values are given. */
const LINUX_KEEPALIVE: KeepaliveSettings = { probes: 9, timeSeconds: 7200, intervalSeconds: 75 };

export interface UpstreamSocketSettings extends ConnectionOrigin {
  readonly tcpKeepalive: KeepaliveSettings | undefined;
}

export function convertUpstreamSocket(message: Cluster, at: string, conversion: Conversion): UpstreamSocketSettings {
  const { upstream_bind_config: bindConfig } = message;
  const { defaultSource, faults } = conversion;
  const own = bindConfig === null ? undefined : convertBindConfig(bindConfig, `${at}.upstream_bind_config`, faults);
  return {
    ...originOf(own, defaultSource),
    tcpKeepalive: convertKeepalive(message),
  };
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
