// What discovery reads of the resources of one type, one by one: each is held against the same rules as if it stood in the bootstrap.

import type { UnpackedAny } from '../proto/any.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import type { DeprecatedFields } from '../support/index.ts';

export interface ResourceType<Resource> {
  /** Full name of its message. */
  readonly typeName: string;
  readonly nameOf: (message: object) => string;
  /** Another where messages would be read otherwise; undefined where nobody can say. */
  readonly scope: string | undefined;
  /**
   * @param at path of the message.
   * @param faults gets whatever is wrong with it; the result counts for nothing after an error.
   */
  readonly read: (content: UnpackedAny, at: string, faults: FaultSink) => ReadContent<Resource>;
}

export interface ReadContent<Resource> {
  /** Undefined after an error only. */
  readonly resource: Resource | undefined;
  readonly deprecatedFields: DeprecatedFields;
  /** Nothing of it depends on what else has been read for the same response. */
  readonly standsAlone: boolean;
}
