// What the ip_tagging filter and its configuration share.

import type { CidrRange } from '../../../snapshot/index.ts';

export interface IpTag {
  readonly name: string;
  readonly ranges: readonly CidrRange[];
  /** Name behind `http.<stat_prefix>.`. */
  readonly counter: string;
}

export interface IpTaggingSettings {
  /** By where requests come from. */
  readonly requests: 'both' | 'internal' | 'external';
  readonly tags: readonly IpTag[];
  /** Lower-case name; null for that of this proxy, which no client can say. */
  readonly header: string | null;
  /** What clients say in that header stays in front of the tags. */
  readonly keepsOthers: boolean;
  readonly noHitCounter: string;
  readonly totalCounter: string;
}
