// MetricsServiceConfig message → settings of the metrics service sink.

import {
  type MetricsServiceConfig,
  rejected,
  type StatSinkManifest,
  supported,
  valueOr,
} from '../../../config/index.ts';
import { convertGrpcService } from '../grpc-config.ts';
import type { MetricsServiceSettings } from './sink.ts';

/** Numbers of ApiVersion and HistogramEmitMode; a field rule refuses others. */
const V2 = 1;
const SUMMARY = 1;
const HISTOGRAM = 2;

export const METRICS_SERVICE: StatSinkManifest = {
  name: 'stat_sinks.metrics_service',
  summary: 'Metrics in the model of Prometheus to a metrics service, over one gRPC stream',
  support: {
    'proxy.config.metrics.v3.MetricsServiceConfig': {
      otherwise: rejected(),
      fields: {
        grpc_service: supported(),
        report_counters_as_deltas: supported(),
        transport_api_version: supported('AUTO is V3; the messages of both are the same'),
        emit_tags_as_labels: supported(),
        histogram_emit_mode: supported(),
        batch_size: supported(),
      },
    },
  },
  convert(message, at, conversion): MetricsServiceSettings | undefined {
    const sink = message as MetricsServiceConfig;
    const service = convertGrpcService(sink.grpc_service, `${at}.grpc_service`, conversion);
    return (
      service && {
        service,
        generation: sink.transport_api_version === V2 ? 'v2' : 'v3',
        countersAsDeltas: valueOr(sink.report_counters_as_deltas, false),
        tagsAsLabels: sink.emit_tags_as_labels,
        hasSummaries: sink.histogram_emit_mode !== HISTOGRAM,
        hasHistograms: sink.histogram_emit_mode !== SUMMARY,
        batchSize: sink.batch_size,
      }
    );
  },
};
