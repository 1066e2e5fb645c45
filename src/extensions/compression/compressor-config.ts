// Messages of compressor libraries → what workers know of them.

import {
  type Conversion,
  extensions,
  type MessageTypes,
  openExtension,
  readDataSource,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  valueOr,
} from '../../config/index.ts';
import type { CompressorLibrary } from './settings.ts';

const TYPED = 'proxy.config.core.v3.TypedExtensionConfig';
const ROLE = 'compressor library';
const GZIP = 'proxy.extensions.compression.gzip.compressor.v3.Gzip';
const BROTLI = 'proxy.extensions.compression.brotli.compressor.v3.Brotli';
const ZSTD = 'proxy.extensions.compression.zstd.compressor.v3.Zstd';

type TypedExtension = NonNullable<MessageTypes['proxy.config.core.v3.TypedExtensionConfig']>;
type Gzip = MessageTypes[typeof GZIP];
type Brotli = MessageTypes[typeof BROTLI];
type Zstd = MessageTypes[typeof ZSTD];

/** Each chunk costs a way to a thread and back, so where nothing is said it is not the 4 KiB of libraries that need none. */
export const DEFAULT_CHUNK_BYTES: number = 32 * 1024;
export const CHUNK_SIZE = supported('32 KiB where it is absent');
export const DEFAULT_MEMORY_LEVEL = 5;
export const DEFAULT_WINDOW_BITS = 12;
/** zlib's own. */
export const DEFAULT_LEVEL = -1;
const DEFAULT_QUALITY = 3;
const DEFAULT_BROTLI_WINDOW_BITS = 18;
const DEFAULT_BLOCK_BITS = 24;
const DEFAULT_ZSTD_LEVEL = 3;
const MAX_ZSTD_LEVEL = 22;
/** The modes GENERIC, TEXT and FONT of brotli, behind the default, which is the first of them. */
const MODES = [0, 0, 1, 2];

export const COMPRESSOR_LIBRARY = supportedAs(ROLE);

export const COMPRESSOR_LIBRARY_SUPPORT: SupportTable = {
  [`${TYPED} (${ROLE})`]: {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([GZIP, BROTLI, ZSTD]) },
  },
  [GZIP]: {
    otherwise: rejected(),
    fields: {
      memory_level: supported(),
      compression_level: supported(),
      compression_strategy: supported(),
      window_bits: supported(),
      chunk_size: CHUNK_SIZE,
    },
  },
  [BROTLI]: {
    otherwise: rejected(),
    fields: {
      quality: supported(),
      encoder_mode: supported(),
      window_bits: supported(),
      input_block_bits: supported(),
      chunk_size: CHUNK_SIZE,
      disable_literal_context_modeling: supported(),
    },
  },
  [ZSTD]: {
    otherwise: rejected(),
    fields: {
      compression_level: supported('22 at most'),
      enable_checksum: supported(),
      strategy: supported(),
      dictionary: supportedWhole('read once'),
      chunk_size: CHUNK_SIZE,
    },
  },
};

/** @returns undefined for what has been refused. */
export function compressorLibraryOf(
  { typed_config: any }: TypedExtension,
  at: string,
  conversion: Conversion,
): CompressorLibrary | undefined {
  const opened = openExtension(any);
  switch (opened?.typeName) {
    case GZIP:
      return gzipOf(opened.message as Gzip);
    case BROTLI:
      return brotliOf(opened.message as Brotli);
    case ZSTD:
      return zstdOf(opened.message as Zstd, `${at}.typed_config`, conversion);
    default:
      return undefined;
  }
}

function gzipOf(gzip: Gzip): CompressorLibrary {
  return {
    kind: 'gzip',
    level: gzip.compression_level === 0 ? DEFAULT_LEVEL : gzip.compression_level,
    strategy: gzip.compression_strategy,
    memoryLevel: valueOr(gzip.memory_level, DEFAULT_MEMORY_LEVEL),
    windowBits: valueOr(gzip.window_bits, DEFAULT_WINDOW_BITS),
    chunkBytes: valueOr(gzip.chunk_size, DEFAULT_CHUNK_BYTES),
  };
}

function brotliOf(brotli: Brotli): CompressorLibrary {
  return {
    kind: 'brotli',
    quality: valueOr(brotli.quality, DEFAULT_QUALITY),
    mode: MODES[brotli.encoder_mode] ?? 0,
    windowBits: valueOr(brotli.window_bits, DEFAULT_BROTLI_WINDOW_BITS),
    blockBits: valueOr(brotli.input_block_bits, DEFAULT_BLOCK_BITS),
    usesLiteralContexts: !brotli.disable_literal_context_modeling,
    chunkBytes: valueOr(brotli.chunk_size, DEFAULT_CHUNK_BYTES),
  };
}

function zstdOf(zstd: Zstd, at: string, conversion: Conversion): CompressorLibrary | undefined {
  const { faults } = conversion;
  const level = valueOr(zstd.compression_level, 0) || DEFAULT_ZSTD_LEVEL;
  if (level > MAX_ZSTD_LEVEL) {
    faults.error(`${at}.compression_level`, `${level} exceeds the limit ${MAX_ZSTD_LEVEL}`);
    return undefined;
  }
  return {
    kind: 'zstd',
    level,
    hasChecksum: zstd.enable_checksum,
    strategy: zstd.strategy,
    dictionary: readDataSource(zstd.dictionary, `${at}.dictionary`, conversion),
    chunkBytes: valueOr(zstd.chunk_size, DEFAULT_CHUNK_BYTES),
  };
}
