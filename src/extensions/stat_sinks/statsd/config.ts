// StatsdSink message → settings of the statsd sink.

import { rejected, type StatSinkManifest, type StatsdSink, supported } from '../../../config/index.ts';
import { convertDatagramTarget, DATAGRAM_ADDRESS, DATAGRAM_SUPPORT } from '../datagram-config.ts';
import type { StatsdSettings } from './sink.ts';

/** Where the configuration has none. */
export const DEFAULT_PREFIX = 'proxy';

export const STATSD: StatSinkManifest = {
  name: 'stat_sinks.statsd',
  summary: 'Lines of statsd, over UDP with one line a datagram, or over TCP to a host of a cluster',
  support: {
    ...DATAGRAM_SUPPORT,
    'proxy.config.metrics.v3.StatsdSink': {
      otherwise: rejected(),
      fields: { address: DATAGRAM_ADDRESS, tcp_cluster_name: supported(), prefix: supported() },
    },
  },
  convert(message, at, conversion): StatsdSettings | undefined {
    const { statsd_specifier: kind, address, tcp_cluster_name: cluster, prefix } = message as StatsdSink;
    const lines = { prefix: prefix || DEFAULT_PREFIX };
    if (kind === 'tcp_cluster_name') {
      conversion.clusters.checkReference(cluster, `${at}.tcp_cluster_name`, conversion.faults);
      conversion.clusters.checkCleartext(cluster, `${at}.tcp_cluster_name`, conversion.faults);
      return { ...lines, target: { kind: 'tcp', cluster } };
    }
    // Without any the field rules have a fault.
    const target = kind === undefined ? undefined : convertDatagramTarget(address, `${at}.address`, conversion);
    return target && { ...lines, target };
  },
};
