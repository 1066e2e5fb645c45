// DatadogConfig messages → settings of the Datadog tracer.

import { clusterAuthority } from '../../../base/authority.ts';
import { type MessageTypes, rejected, supported, type TracerManifest, warned } from '../../../config/index.ts';
import { spanCounters } from '../span-counters-config.ts';
import type { DatadogSettings } from './settings.ts';

export const DATADOG: TracerManifest = {
  support: {
    'proxy.config.trace.v3.DatadogConfig': {
      otherwise: rejected(),
      fields: {
        collector_cluster: supported(),
        service_name: supported(),
        collector_hostname: supported(),
        remote_config: warned('the configuration alone says what is sampled'),
      },
    },
  },
  convert(message, at, conversion) {
    const config = message as MessageTypes['proxy.config.trace.v3.DatadogConfig'];
    const { collector_cluster: cluster, service_name: service } = config;
    conversion.clusters.checkReference(cluster, `${at}.collector_cluster`, conversion.faults);
    const host = config.collector_hostname || clusterAuthority(cluster);
    const counters = spanCounters('datadog');
    const settings: DatadogSettings = { cluster, host, service, counters };
    return { name: 'tracers.datadog', settings, wholeCounters: Object.values(counters) };
  },
};
