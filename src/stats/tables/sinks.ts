// stat_sinks.<sink>.*: where statistics go with each flush; written by main.

import { statTable } from '../stat-table.ts';

/** stat_sinks.hystrix.*: the event stream of GET /hystrix_event_stream. */
export const HYSTRIX_STATS = statTable({
  listeners: 'gauge',
  listeners_refused: 'counter',
  batches_dropped: 'counter',
});
