// What the custom_response filter and its configuration share.

import type { AbsoluteTarget } from '../../../base/absolute-target.ts';
import type { HeaderEdits, MatchTree, RedirectAction, ReplyFormat } from '../../../snapshot/index.ts';

/** A response of the proxy's own. */
export interface LocalPolicy {
  readonly kind: 'local';
  readonly body: Uint8Array;
  readonly format: ReplyFormat | null;
  /** Null for that of the response at hand. */
  readonly status: number | null;
  readonly responseEdits: HeaderEdits | null;
}

/** The response to another request. */
export interface RedirectPolicy {
  readonly kind: 'redirect';
  /** Where that goes, or what of the request at hand changes. */
  readonly target: AbsoluteTarget | RedirectAction;
  /** Null for that of the response at hand. */
  readonly status: number | null;
  readonly requestEdits: HeaderEdits | null;
  readonly responseEdits: HeaderEdits | null;
}

export type Policy = LocalPolicy | RedirectPolicy;

export interface CustomResponseCounters {
  /** Other requests for which no route was found, and those whose place could not be told. */
  readonly noRoute: string;
  readonly invalidUri: string;
}

/** Of the filter itself, and of each level of a route. */
export interface CustomResponseSettings {
  /** Null for none. */
  readonly tree: MatchTree<Policy> | null;
  /** A policy asks somebody else. */
  readonly asksOthers: boolean;
  /** Names behind `http.<stat_prefix>.`. */
  readonly counters: CustomResponseCounters;
}
