// What the stateful_session filter and its configuration share.

import type { HashCookie } from '../../../snapshot/index.ts';

/** Where a session says which host it is served by. */
export type SessionState =
  | { readonly kind: 'cookie'; readonly cookie: HashCookie }
  /** Name in lower case. */
  | { readonly kind: 'header'; readonly name: string }
  /** In a header of the upstream's own. Name in lower case. */
  | { readonly kind: 'envelope'; readonly name: string };

/** Names behind `http.<stat_prefix>.`. */
export interface SessionCounters {
  /** Requests that went to the host of their session, that went to another one, that went to none. */
  readonly routed: string;
  readonly failedOpen: string;
  readonly failedClosed: string;
  /** Requests without a session, or one that cannot be read, that went to a host. */
  readonly noSession: string;
}

/** Of the filter itself, or what one level of a route says instead. */
export interface SessionSettings {
  /** Null: there are no sessions. */
  readonly state: SessionState | null;
  readonly isStrict: boolean;
  /** What a request is answered whose host cannot be used, where that is strict. */
  readonly missingStatus: number;
}

export interface StatefulSessionSettings extends SessionSettings {
  /** Null where nothing is counted. */
  readonly counters: SessionCounters | null;
}
