// TcpProxy message → TcpProxySettings.

import type { TcpProxySettings } from '../../snapshot/index.ts';
import { convertAccessLogs } from './access-log/access-log.ts';
import type { Conversion } from './conversion.ts';
import type { TcpProxy } from './messages.ts';
import { durationMsOr, valueOr } from './units.ts';

const DEFAULT_IDLE_TIMEOUT_MS = 3_600_000;

export function convertTcpProxy(message: TcpProxy, at: string, conversion: Conversion): TcpProxySettings {
  const { clusters, faults } = conversion;
  clusters.checkReference(message.cluster, `${at}.cluster`, faults);
  return {
    kind: 'tcp-proxy',
    statPrefix: message.stat_prefix,
    accessLogs: convertAccessLogs(message.access_log, `${at}.access_log`, conversion),
    cluster: message.cluster,
    idleTimeoutMs: durationMsOr(message.idle_timeout, DEFAULT_IDLE_TIMEOUT_MS),
    maxConnectAttempts: valueOr(message.max_connect_attempts, 1),
  };
}
