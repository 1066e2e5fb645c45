// What main tells the workers of a decompressor filter.

import type { RuntimeSetting } from '../../../snapshot/index.ts';
import type { DecompressorLibrary } from '../../compression/settings.ts';

export type DirectionCounter =
  | 'decompressed'
  | 'not_decompressed'
  | 'total_uncompressed_bytes'
  | 'total_compressed_bytes';

export interface DirectionSettings {
  readonly enabled: RuntimeSetting<boolean>;
  readonly ignoresNoTransform: boolean;
  /** By what each counts: its name behind `http.<stat prefix>.`. */
  readonly counters: Readonly<Record<DirectionCounter, string>>;
}

/** The same names, of what goes wrong in the library. */
export interface FailureCounters {
  /** By the error's code, as zlib tells it. */
  readonly byCode: Readonly<Record<string, string>>;
  /** Any other. */
  readonly others: string;
  readonly bombs: string;
}

export interface DecompressorSettings {
  readonly library: DecompressorLibrary;
  /** Upstreams are told that they may compress their responses. */
  readonly advertises: boolean;
  readonly request: DirectionSettings;
  readonly response: DirectionSettings;
  readonly failures: FailureCounters;
}
