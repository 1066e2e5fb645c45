// Libraries of compression as workers get to know them. Numbers are those of the libraries themselves.

export interface GzipSettings {
  readonly kind: 'gzip';
  /** -1 for what zlib takes for the best trade. */
  readonly level: number;
  /** Z_DEFAULT_STRATEGY and the rest of that row. */
  readonly strategy: number;
  /** 1 to 9. */
  readonly memoryLevel: number;
  readonly windowBits: number;
  readonly chunkBytes: number;
}

export interface BrotliSettings {
  readonly kind: 'brotli';
  /** 0 to 11. */
  readonly quality: number;
  /** BROTLI_MODE_GENERIC and the rest of that row. */
  readonly mode: number;
  readonly windowBits: number;
  readonly blockBits: number;
  readonly usesLiteralContexts: boolean;
  readonly chunkBytes: number;
}

export interface ZstdSettings {
  readonly kind: 'zstd';
  readonly level: number;
  readonly hasChecksum: boolean;
  /** ZSTD_fast and the rest of that row; 0 for that of the level. */
  readonly strategy: number;
  /** Empty for none. */
  readonly dictionary: Uint8Array;
  readonly chunkBytes: number;
}

export type CompressorLibrary = GzipSettings | BrotliSettings | ZstdSettings;

/** How far what is decompressed may outgrow what has come. */
export interface InflationLimit {
  /** Bytes for each byte. */
  readonly ratio: number;
  /** As long as there are no more bytes than these, the ratio does not count. */
  readonly freeBytes: number;
}

interface Decompressor {
  readonly limit: InflationLimit;
  readonly chunkBytes: number;
}

export interface GunzipSettings extends Decompressor {
  readonly kind: 'gzip';
  readonly windowBits: number;
}

export interface UnbrotliSettings extends Decompressor {
  readonly kind: 'brotli';
  readonly reallocatesRing: boolean;
}

export interface UnzstdSettings extends Decompressor {
  readonly kind: 'zstd';
  readonly dictionaries: readonly Uint8Array[];
}

export type DecompressorLibrary = GunzipSettings | UnbrotliSettings | UnzstdSettings;

/** As heads name them. */
export const ENCODING_OF = { gzip: 'gzip', brotli: 'br', zstd: 'zstd' } as const;
