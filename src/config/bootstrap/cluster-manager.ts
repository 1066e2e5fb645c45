// ClusterManager message → what concerns all clusters together.

import type { Bootstrap } from '../proto/generated/messages.ts';
import { checkLogPath, type LogPathLook } from '../resources/access-log/log-path.ts';
import type { FaultSink } from '../resources/fault-sink.ts';

export interface ClusterManagerSettings {
  /** Where ejections of outliers are written; empty for nowhere. */
  readonly outlierEventLogPath: string;
}

export function convertClusterManager(
  { cluster_manager: message }: Bootstrap,
  look: LogPathLook,
  faults: FaultSink,
): ClusterManagerSettings {
  const path = message?.outlier_detection?.event_log_path ?? '';
  checkLogPath(path, 'cluster_manager.outlier_detection.event_log_path', look, faults);
  return { outlierEventLogPath: path };
}
