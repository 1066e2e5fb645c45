// What a connection manager makes of replies of the proxy's own, before its clients get them.

import type { AccessLogFilter } from './access-log.ts';
import type { ReplyFormat } from './format.ts';
import type { HeaderEdits } from './route-table.ts';

export interface LocalReplySettings {
  /** The first one whose filter lets a reply pass changes it; the others do not come into it. */
  readonly mappers: readonly ReplyMapperSettings[];
  /** Of replies whose mapper has none, and of those without one; null leaves bodies as they are. */
  readonly format: ReplyFormat | null;
}

export interface ReplyMapperSettings {
  readonly filter: AccessLogFilter;
  /** Null keeps the reply's. */
  readonly status: number | null;
  /** Null keeps the reply's. */
  readonly body: Uint8Array | null;
  readonly headerEdits: HeaderEdits | null;
  readonly format: ReplyFormat | null;
}
