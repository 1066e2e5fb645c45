// Messages of decompressor libraries → what workers know of them.

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
import { CHUNK_SIZE, DEFAULT_CHUNK_BYTES } from './compressor-config.ts';
import type { DecompressorLibrary, InflationLimit } from './settings.ts';

const TYPED = 'proxy.config.core.v3.TypedExtensionConfig';
const ROLE = 'decompressor library';
const GZIP = 'proxy.extensions.compression.gzip.decompressor.v3.Gzip';
const BROTLI = 'proxy.extensions.compression.brotli.decompressor.v3.Brotli';
const ZSTD = 'proxy.extensions.compression.zstd.decompressor.v3.Zstd';

type TypedExtension = NonNullable<MessageTypes[typeof TYPED]>;
type Gzip = MessageTypes[typeof GZIP];
type Brotli = MessageTypes[typeof BROTLI];
type Zstd = MessageTypes[typeof ZSTD];

const DEFAULT_WINDOW_BITS = 15;
/** Short bodies that repeat one thing are no bombs. */
const DEFAULT_LIMIT: InflationLimit = { ratio: 100, freeBytes: 64 * 1024 };

export const DECOMPRESSOR_LIBRARY = supportedAs(ROLE);

export const DECOMPRESSOR_LIBRARY_SUPPORT: SupportTable = {
  [`${TYPED} (${ROLE})`]: {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([GZIP, BROTLI, ZSTD]) },
  },
  [GZIP]: {
    otherwise: rejected(),
    fields: {
      window_bits: supported(),
      chunk_size: CHUNK_SIZE,
      max_inflate_ratio: supported('where it is absent, the first 64 KiB are free'),
    },
  },
  [BROTLI]: {
    otherwise: rejected(),
    fields: { disable_ring_buffer_reallocation: supported(), chunk_size: CHUNK_SIZE },
  },
  [ZSTD]: {
    otherwise: rejected(),
    fields: { dictionaries: supportedWhole('read once'), chunk_size: CHUNK_SIZE },
  },
};

/** @returns undefined for what has been refused. */
export function decompressorLibraryOf(
  { typed_config: any }: TypedExtension,
  at: string,
  conversion: Conversion,
): DecompressorLibrary | undefined {
  const opened = openExtension(any);
  switch (opened?.typeName) {
    case GZIP: {
      const { window_bits: windowBits, chunk_size: chunkSize, max_inflate_ratio: ratio } = opened.message as Gzip;
      return {
        kind: 'gzip',
        windowBits: valueOr(windowBits, DEFAULT_WINDOW_BITS),
        chunkBytes: valueOr(chunkSize, DEFAULT_CHUNK_BYTES),
        limit: ratio === null ? DEFAULT_LIMIT : { ratio: ratio.value, freeBytes: 0 },
      };
    }
    case BROTLI: {
      const { chunk_size: chunkSize, disable_ring_buffer_reallocation: isFixed } = opened.message as Brotli;
      const chunkBytes = valueOr(chunkSize, DEFAULT_CHUNK_BYTES);
      return { kind: 'brotli', reallocatesRing: !isFixed, chunkBytes, limit: DEFAULT_LIMIT };
    }
    case ZSTD: {
      const { dictionaries, chunk_size: chunkSize } = opened.message as Zstd;
      const read = dictionaries.map((source, index) =>
        readDataSource(source, `${at}.typed_config.dictionaries[${index}]`, conversion),
      );
      const chunkBytes = valueOr(chunkSize, DEFAULT_CHUNK_BYTES);
      return { kind: 'zstd', dictionaries: read, chunkBytes, limit: DEFAULT_LIMIT };
    }
    default:
      return undefined;
  }
}
