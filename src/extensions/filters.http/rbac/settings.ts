// What the rbac filter and its configuration share.

import type { AccessRules } from '../../access/settings.ts';

/** Of the filter itself, or what one level of a route says instead. */
export interface RbacSettings {
  /** Null: everybody may do everything. */
  readonly rules: AccessRules | null;
  /** Judged and counted, no more. */
  readonly shadowRules: AccessRules | null;
  /** In front of the keys of metadata. */
  readonly rulesPrefix: string;
  readonly shadowPrefix: string;
  /** Counts each policy by itself. */
  readonly countsPolicies: boolean;
}

/** Names behind `http.<stat_prefix>.`. */
export interface RbacCounters {
  readonly allowed: string;
  readonly denied: string;
  readonly shadowAllowed: string;
  readonly shadowDenied: string;
}

export interface RbacFilterSettings {
  readonly own: RbacSettings;
  readonly counters: RbacCounters;
  /** In front of a policy's name and of what has been decided by it. */
  readonly policyScope: string;
  readonly shadowPolicyScope: string;
}
