// TLS contexts of one listener or cluster that are others now.

import type { ReadContext } from '../../config/index.ts';
import type { TlsSettings } from '../../snapshot/index.ts';

/** What handshakes go by, and what the configuration says of it without secrets that have come by discovery. */
export type ChangedContext<Settings extends TlsSettings = TlsSettings> = Pick<
  ReadContext<Settings>,
  'settings' | 'configured'
>;

/** By place. */
export type ChangedContexts<Settings extends TlsSettings = TlsSettings> = ReadonlyMap<number, ChangedContext<Settings>>;
