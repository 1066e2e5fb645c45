// What the header_to_metadata filter and its configuration share.

import type { RegexSubstitution } from '../../../snapshot/index.ts';

/** What a rule writes. */
export interface MetadataTarget {
  readonly namespace: string;
  readonly key: string;
  /** In place of the value found; empty for that. */
  readonly value: string;
  /** Of the value found; null for as it is. */
  readonly rewrite: RegexSubstitution | null;
  readonly isNumber: boolean;
  readonly isBase64: boolean;
}

export interface MetadataRule {
  readonly source: 'header' | 'cookie';
  /** Of a header in lower case. */
  readonly name: string;
  readonly onPresent: MetadataTarget | null;
  readonly onMissing: MetadataTarget | null;
  /** Takes the header out. */
  readonly isRemoved: boolean;
}

/** Of the filter itself, or what one level of a route says instead. */
export interface HeaderToMetadataSettings {
  readonly request: readonly MetadataRule[];
  readonly response: readonly MetadataRule[];
}
