// HystrixSink message → settings of the sink that feeds GET /hystrix_event_stream.

import { type HystrixSink, rejected, type StatSinkManifest, supported, toNumber } from '../../../config/index.ts';
import type { HystrixSettings } from './sink.ts';

const DEFAULT_BUCKETS = 10;
/** Each costs every cluster 40 bytes while somebody listens. */
const MOST_BUCKETS = 1000;

export const HYSTRIX: StatSinkManifest = {
  name: 'stat_sinks.hystrix',
  summary: 'Records of clusters to whoever reads `/hystrix_event_stream`',
  isAlone: 'there is one path that its events have',
  support: {
    'proxy.config.metrics.v3.HystrixSink': { otherwise: rejected(), fields: { num_buckets: supported() } },
  },
  convert(message, at, { faults }): HystrixSettings | undefined {
    const buckets = toNumber((message as HystrixSink).num_buckets);
    if (buckets >= 0 && buckets <= MOST_BUCKETS) return { buckets: buckets || DEFAULT_BUCKETS };
    faults.error(`${at}.num_buckets`, `${buckets} is not within 0 to ${MOST_BUCKETS}`);
    return undefined;
  },
};
