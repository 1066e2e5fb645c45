// ClusterManager message → what concerns all clusters together.

import type { GrpcSourceSettings } from '../../snapshot/index.ts';
import type { Bootstrap } from '../proto/generated/messages.ts';
import { checkLogPath, type LogPathLook } from '../resources/access-log/log-path.ts';
import { convertServiceStream, type SourceConversion } from '../resources/config-source.ts';

/** The stream by which a server hears of load. */
export type LoadReportingSettings = Omit<GrpcSourceSettings, 'kind' | 'form' | 'rateLimit'>;

export interface ClusterManagerSettings {
  /** Where ejections of outliers are written; empty for nowhere. */
  readonly outlierEventLogPath: string;
  /** Undefined where nobody is told of load. */
  readonly loadReporting: LoadReportingSettings | undefined;
}

export function convertClusterManager(
  { cluster_manager: message }: Bootstrap,
  look: LogPathLook,
  conversion: SourceConversion,
): ClusterManagerSettings {
  const path = message?.outlier_detection?.event_log_path ?? '';
  checkLogPath(path, 'cluster_manager.outlier_detection.event_log_path', look, conversion.faults);
  const load = message?.load_stats_config ?? null;
  return {
    outlierEventLogPath: path,
    loadReporting:
      load === null ? undefined : convertServiceStream(load, 'cluster_manager.load_stats_config', conversion),
  };
}
