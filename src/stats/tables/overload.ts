// overload.<name>.*: resource monitors, overload actions and load shed points, by their names with `proxy.` before them.

import { statTable } from '../stat-table.ts';

export const OVERLOAD_MONITOR_STATS = statTable({
  /** In percent. */
  pressure: 'gauge',
  failed_updates: 'counter',
  /** The update before had not ended. */
  skipped_updates: 'counter',
});

export const OVERLOAD_ACTION_STATS = statTable({
  /** 1 while it is on in full. */
  active: 'gauge',
  scale_percent: 'gauge',
});

/** overload.proxy.overload_actions.reset_high_memory_stream.*, beside those of every action. */
export const STREAM_RESET_STATS = statTable({ count: 'counter' });

/** overload.proxy.overload_actions.shrink_heap.*, beside those of every action. */
export const HEAP_SHRINK_STATS = statTable({ shrink_count: 'counter' });

export const LOAD_SHED_STATS = statTable({
  scale_percent: 'gauge',
  shed_load_count: 'counter',
});
