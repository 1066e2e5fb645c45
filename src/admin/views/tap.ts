// Requests and responses as they pass, as the admin interface asks for them.

import type { TapSettings, TapTrace } from '../../snapshot/index.ts';

/** Ends when the time is over or the server stops; `close` ends the recording. */
export interface TapFeedView extends AsyncIterable<TapTrace> {
  close(): void;
}

export interface TapView {
  /** Some filter can record. */
  readonly isConfigured: boolean;
  /** @param options timeoutMs is 0 for no limit. */
  begin(options: TapSettings & { readonly timeoutMs: number }): TapFeedView | 'unknown-config-id' | 'attached';
}
