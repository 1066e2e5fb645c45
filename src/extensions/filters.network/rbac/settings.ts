// What the network rbac filter and its configuration share.

import type { AccessRules } from '../../access/settings.ts';

export interface NetworkRbacSettings {
  /** Null: everybody may connect. */
  readonly rules: AccessRules | null;
  /** Judged and counted, no more. */
  readonly shadowRules: AccessRules | null;
  /** In front of the keys of metadata. */
  readonly shadowPrefix: string;
  /** Judges again with everything that a client sends, and not once only. */
  readonly isContinuous: boolean;
  /** How long a connection is kept before it is closed, unread; 0 for not at all. */
  readonly delayMs: number;
  /** Names behind the stat scope. */
  readonly counters: {
    readonly allowed: string;
    readonly denied: string;
    readonly shadowAllowed: string;
    readonly shadowDenied: string;
  };
}
