// SinkConfig message → settings of the OpenTelemetry sink.

import {
  type OpenTelemetrySinkConfig,
  rejected,
  type StatSinkManifest,
  supported,
  valueOr,
  warned,
} from '../../../config/index.ts';
import { convertGrpcService } from '../grpc-config.ts';
import type { OpenTelemetrySettings } from './sink.ts';

export const OPEN_TELEMETRY: StatSinkManifest = {
  name: 'stat_sinks.open_telemetry',
  summary: 'Data points of OTLP to a collector, by calls over gRPC',
  support: {
    'proxy.extensions.stat_sinks.open_telemetry.v3.SinkConfig': {
      otherwise: rejected(),
      fields: {
        custom_metric_conversions: rejected('metrics have the names of stats'),
        grpc_service: supported(),
        report_counters_as_deltas: supported(),
        report_histograms_as_deltas: supported(),
        emit_tags_as_attributes: supported(),
        use_tag_extracted_name: supported(),
        prefix: supported(),
        resource_detectors: warned('the resource is named after the node'),
      },
    },
  },
  convert(message, at, conversion): OpenTelemetrySettings | undefined {
    const sink = message as OpenTelemetrySinkConfig;
    const service = convertGrpcService(sink.grpc_service, `${at}.grpc_service`, conversion);
    return (
      service && {
        service,
        countersAsDeltas: sink.report_counters_as_deltas,
        histogramsAsDeltas: sink.report_histograms_as_deltas,
        tagsAsAttributes: valueOr(sink.emit_tags_as_attributes, true),
        usesExtractedNames: valueOr(sink.use_tag_extracted_name, true),
        prefix: sink.prefix === '' ? '' : `${sink.prefix}.`,
      }
    );
  },
};
