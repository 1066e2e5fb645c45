// What main tells the workers of a compressor filter.

import type { RuntimeSetting } from '../../../snapshot/index.ts';
import type { CompressorLibrary } from '../../compression/settings.ts';

export type DirectionCounter =
  | 'compressed'
  | 'not_compressed'
  | 'total_uncompressed_bytes'
  | 'total_compressed_bytes'
  | 'content_length_too_small';

export type ResponseCounter =
  | DirectionCounter
  | 'no_accept_header'
  | 'header_identity'
  | 'header_compressor_used'
  | 'header_compressor_overshadowed'
  | 'header_wildcard'
  | 'header_not_valid'
  | 'not_compressed_etag';

/** By what each counts: its name behind `http.<stat prefix>.`. */
export type CounterNames<Counted extends string> = Readonly<Record<Counted, string>>;

export interface DirectionSettings<Counted extends string = DirectionCounter> {
  readonly enabled: RuntimeSetting<boolean>;
  /** Bodies of which is known that they are shorter are left alone. */
  readonly minLength: number;
  /** In lower case, without parameters. */
  readonly contentTypes: readonly string[];
  readonly counters: CounterNames<Counted>;
}

export interface ResponseSettings extends DirectionSettings<ResponseCounter> {
  readonly disablesOnEtag: boolean;
  readonly weakensEtag: boolean;
  readonly removesAcceptEncoding: boolean;
  /** Statuses whose responses are left alone. */
  readonly exemptStatuses: readonly number[];
  readonly hasStatusHeader: boolean;
}

export interface CompressorSettings {
  readonly library: CompressorLibrary;
  /** Among encodings that a client likes as well as this one, this one is taken. */
  readonly isChosenFirst: boolean;
  /** Null: requests are never compressed. */
  readonly request: DirectionSettings | null;
  readonly response: ResponseSettings;
  /** Another name that header_compressor_used has in older filters; empty for none. */
  readonly olderUsedCounter: string;
}

/** What one level of a route says. Undefined for nothing. */
export interface CompressorRouteSettings {
  readonly library: CompressorLibrary | undefined;
  /** Responses are compressed, whatever the runtime says. */
  readonly enablesResponses: boolean;
  readonly removesAcceptEncoding: boolean | undefined;
}
