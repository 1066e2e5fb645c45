// GraphiteStatsdSink message → settings of the Graphite sink.

import type { GraphiteStatsdSink, StatSinkManifest } from '../../../config/index.ts';
import { DATAGRAM_SUPPORT } from '../datagram-config.ts';
import { convertTaggedLines, TAGGED_LINES_SUPPORT } from '../tagged-lines-config.ts';

export const GRAPHITE_STATSD: StatSinkManifest = {
  name: 'stat_sinks.graphite_statsd',
  summary: 'Lines of statsd with the tags of Graphite behind the name, as datagrams over UDP or to a unix socket',
  support: {
    ...DATAGRAM_SUPPORT,
    'proxy.extensions.stat_sinks.graphite_statsd.v3.GraphiteStatsdSink': TAGGED_LINES_SUPPORT,
  },
  convert: (message, at, conversion) => convertTaggedLines(message as GraphiteStatsdSink, at, conversion),
};
