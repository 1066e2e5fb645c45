// ClusterManager message → what concerns all clusters together, and the servers that are told of them.

import type { Bootstrap } from '../proto/generated/messages.ts';
import { checkLogPath, type LogPathLook } from '../resources/access-log/log-path.ts';
import { convertServiceStream, type ServiceStreamSettings, type SourceConversion } from '../resources/config-source.ts';
import type { ApiConfigSource } from '../resources/messages.ts';

export interface ClusterManagerSettings {
  /** Where ejections of outliers are written; empty for nowhere. */
  readonly outlierEventLogPath: string;
  /** Undefined where nobody is told of load. */
  readonly loadReporting: ServiceStreamSettings | undefined;
  /** Undefined where nobody has hosts checked. */
  readonly healthDelegation: ServiceStreamSettings | undefined;
}

export function convertClusterManager(
  { cluster_manager: message, hds_config: health }: Bootstrap,
  look: LogPathLook,
  conversion: SourceConversion,
): ClusterManagerSettings {
  const path = message?.outlier_detection?.event_log_path ?? '';
  checkLogPath(path, 'cluster_manager.outlier_detection.event_log_path', look, conversion.faults);
  const convert = (source: ApiConfigSource | null, at: string): ServiceStreamSettings | undefined =>
    source === null ? undefined : convertServiceStream(source, at, conversion);
  return {
    outlierEventLogPath: path,
    loadReporting: convert(message?.load_stats_config ?? null, 'cluster_manager.load_stats_config'),
    healthDelegation: convert(health, 'hds_config'),
  };
}
