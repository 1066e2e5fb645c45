// ZipkinConfig messages → settings of the Zipkin tracer.

import { clusterAuthority } from '../../../base/authority.ts';
import {
  type Conversion,
  type MessageTypes,
  only,
  rejected,
  supported,
  type TracerManifest,
  valueOr,
  warned,
} from '../../../config/index.ts';
import { convertHttpTarget, HTTP_SERVICE_SUPPORT } from '../../http-service-config.ts';
import type { HttpTarget } from '../../http-target.ts';
import { spanCounters } from '../span-counters-config.ts';
import type { ZipkinSettings } from './settings.ts';

type ZipkinConfig = MessageTypes['proxy.config.trace.v3.ZipkinConfig'];

/** Numbers of CollectorEndpointVersion and of TraceContextOption; field rules refuse others. */
const [HTTP_JSON, HTTP_PROTO] = [1, 2];
const B3_WITH_W3C = 1;

export const ZIPKIN: TracerManifest = {
  support: {
    ...HTTP_SERVICE_SUPPORT,
    'proxy.config.trace.v3.ZipkinConfig': {
      otherwise: rejected(),
      fields: {
        collector_cluster: supported(),
        collector_endpoint: supported(),
        trace_id_128bit: supported(),
        shared_span_context: supported(),
        collector_endpoint_version: only(['HTTP_JSON', 'HTTP_PROTO'], 'the first version of the format is gone'),
        collector_hostname: supported(),
        split_spans_for_request: warned('say spawn_upstream_span at the connection manager'),
        trace_context_option: supported(),
        collector_service: supported('in place of collector_cluster, collector_endpoint and collector_hostname'),
      },
    },
  },
  convert(message, at, conversion) {
    const zipkin = message as ZipkinConfig;
    const target = targetOf(zipkin, at, conversion);
    const version = zipkin.collector_endpoint_version;
    if (version !== HTTP_JSON && version !== HTTP_PROTO) {
      const place = `${at}.collector_endpoint_version`;
      conversion.faults.error(place, 'has to be HTTP_JSON or HTTP_PROTO, for the collector at /api/v2/spans');
    }
    if (target === undefined) return undefined;
    const counters = spanCounters('zipkin');
    const settings: ZipkinSettings = {
      ...target,
      counters,
      encoding: version === HTTP_PROTO ? 'protobuf' : 'json',
      isLongId: zipkin.trace_id_128bit,
      sharesSpans: valueOr(zipkin.shared_span_context, true),
      speaksW3c: zipkin.trace_context_option === B3_WITH_W3C,
    };
    return { name: 'tracers.zipkin', settings, wholeCounters: Object.values(counters) };
  },
};

function targetOf(zipkin: ZipkinConfig, at: string, conversion: Conversion): HttpTarget | undefined {
  const { collector_service: service, collector_cluster: cluster, collector_endpoint: path } = zipkin;
  if (service !== null) return convertHttpTarget(service, `${at}.collector_service`, conversion);
  const { faults } = conversion;
  if (cluster === '') faults.error(`${at}.collector_cluster`, 'is required, unless there is a collector_service');
  conversion.clusters.checkReference(cluster, `${at}.collector_cluster`, faults);
  if (!path.startsWith('/')) {
    faults.error(`${at}.collector_endpoint`, `has to be a path with its slash, not ${JSON.stringify(path)}`);
  }
  return { cluster, host: zipkin.collector_hostname || clusterAuthority(cluster), path, timeoutMs: 0, headers: [] };
}
