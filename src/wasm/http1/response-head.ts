// The response head of the codec.

import * as layout from '../../../assembly/layout/http1.ts';
import type { CodecMemory } from './memory.ts';
import { MessageHead } from './message-head.ts';
import type { PreparedRegion } from './prepared-lines.ts';

export class ResponseHead extends MessageHead {
  constructor(memory: CodecMemory, prepared: PreparedRegion) {
    super(memory, prepared, layout.RESPONSE_RECORD, layout.RESPONSE_FIELDS, layout.RESPONSE_LINES);
  }

  /** 100 to 999; codes above 599 are passed on as they are. */
  get status(): number {
    return this.word(layout.RECORD_STATUS);
  }

  /** The reason phrase, often empty. */
  reason(): string {
    return this.slice(this.word(layout.RECORD_TARGET_OFFSET), this.word(layout.RECORD_TARGET_LENGTH));
  }
}
