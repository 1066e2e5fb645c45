// How large the head of a message may be, from options of either side.

import type { FaultSink } from './fault-sink.ts';
import type { HttpProtocolOptions } from './messages.ts';
import { valueOr } from './units.ts';

const DEFAULT_MAX_KB = 60;
const DEFAULT_MAX_FIELDS = 100;
/** What the parser can hold at most. */
export const LARGEST_HEAD_BYTES = 65_535;
export const MOST_HEAD_FIELDS = 1024;

interface HeadLimits {
  readonly maxHeadBytes: number;
  readonly maxFields: number;
}

/** Where the limits stand in the configuration. */
interface LimitPaths {
  readonly kb: string;
  readonly count: string;
}

export function convertHeadLimits(
  maxKb: HttpProtocolOptions['max_response_headers_kb'],
  maxCount: HttpProtocolOptions['max_headers_count'],
  at: LimitPaths,
  faults: FaultSink,
): HeadLimits {
  const maxHeadBytes = valueOr(maxKb, DEFAULT_MAX_KB) * 1024;
  const maxFields = valueOr(maxCount, DEFAULT_MAX_FIELDS);
  if (maxHeadBytes > LARGEST_HEAD_BYTES) {
    faults.warning(
      at.kb,
      `${maxHeadBytes / 1024} KiB is more than can be read: heads end at ${LARGEST_HEAD_BYTES} bytes`,
    );
  }
  if (maxFields > MOST_HEAD_FIELDS) {
    faults.warning(at.count, `${maxFields} is more than can be read: heads have at most ${MOST_HEAD_FIELDS} fields`);
  }
  return {
    maxHeadBytes: Math.min(maxHeadBytes, LARGEST_HEAD_BYTES),
    maxFields: Math.min(maxFields, MOST_HEAD_FIELDS),
  };
}
