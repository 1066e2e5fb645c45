// DogStatsdSink message → settings of the DogStatsD sink.

import type { DogStatsdSink, StatSinkManifest } from '../../../config/index.ts';
import { DATAGRAM_SUPPORT } from '../datagram-config.ts';
import { convertTaggedLines, TAGGED_LINES_SUPPORT } from '../tagged-lines-config.ts';

export const DOG_STATSD: StatSinkManifest = {
  name: 'stat_sinks.dog_statsd',
  summary: 'Lines of DogStatsD, with tags behind the value, as datagrams over UDP or to a unix socket',
  support: { ...DATAGRAM_SUPPORT, 'proxy.config.metrics.v3.DogStatsdSink': TAGGED_LINES_SUPPORT },
  convert: (message, at, conversion) => convertTaggedLines(message as DogStatsdSink, at, conversion),
};
