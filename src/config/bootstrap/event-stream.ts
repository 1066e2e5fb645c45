// The stats sink that feeds GET /hystrix_event_stream. It sends nothing anywhere, so it is no sink like the others: it is there,
// and who asks for the path gets its events.

import type { Bootstrap, HystrixSink, StatsSink } from '../proto/generated/messages.ts';
import { int64ToNumber } from '../proto/int64.ts';
import { openExtension } from '../resources/extension.ts';
import type { FaultSink } from '../resources/fault-sink.ts';

export interface EventStreamSettings {
  /** Flushes that counters are compared over; 1 or more. */
  readonly buckets: number;
}

const TYPE = 'proxy.config.metrics.v3.HystrixSink';
/** Without settings the name is enough. */
const NAME = /^(?:envoy|proxy)\.stat_sinks\.hystrix$/;
const DEFAULT_BUCKETS = 10;
/** Each costs every cluster 40 bytes while somebody listens. */
const MOST_BUCKETS = 1000;

/** @returns undefined where no sink asks for it. */
export function convertEventStream(
  { stats_sinks: sinks }: Pick<Bootstrap, 'stats_sinks'>,
  faults: FaultSink,
): EventStreamSettings | undefined {
  const found = sinks.flatMap((sink, index) => {
    const message = hystrixMessage(sink);
    return message === undefined ? [] : [{ message, at: `stats_sinks[${index}]` }];
  });
  const [first, second] = found;
  if (second !== undefined) faults.error(second.at, 'is a second hystrix sink; there is one path that its events have');
  if (first === undefined) return undefined;
  const buckets = int64ToNumber(first.message?.num_buckets ?? 0);
  if (buckets < 0 || buckets > MOST_BUCKETS) {
    faults.error(`${first.at}.typed_config.num_buckets`, `${buckets} is not within 0 to ${MOST_BUCKETS}`);
  }
  return { buckets: buckets || DEFAULT_BUCKETS };
}

/** Null for the sink without settings, undefined for another one. */
function hystrixMessage({ name, typed_config }: StatsSink): HystrixSink | null | undefined {
  if (typed_config === null) return NAME.test(name) ? null : undefined;
  const opened = openExtension(typed_config);
  return opened?.typeName === TYPE ? (opened.message as HystrixSink) : undefined;
}
