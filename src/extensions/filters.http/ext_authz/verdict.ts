// What a service has said of a request, in whichever protocol.

import type { JsonObject } from '../../../base/json.ts';
import type { FieldEdit } from '../field-edits.ts';

/** The request goes on. */
export interface Allowed {
  readonly kind: 'ok';
  /** Of the request's head. */
  readonly edits: readonly FieldEdit[];
  readonly removed: readonly string[];
  /** Of the query: null takes a parameter away. */
  readonly parameters: readonly (readonly [name: string, value: string | null])[];
  readonly response: readonly FieldEdit[];
  readonly metadata: JsonObject | null;
}

/** The request is turned away. */
export interface Denied {
  readonly kind: 'denied';
  readonly status: number;
  readonly body: Buffer;
  readonly response: readonly FieldEdit[];
  readonly metadata: JsonObject | null;
}

/** There is no answer, or none that makes sense. */
export interface Failed {
  readonly kind: 'error';
}

export type Verdict = Allowed | Denied | Failed;

export const FAILED: Failed = { kind: 'error' };
