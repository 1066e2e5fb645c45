// The Gzip message of configurations from before the compressor filter → settings of that filter.

import { type HttpFilterManifest, type MessageTypes, rejected, supported, valueOr } from '../../../config/index.ts';
import {
  CHUNK_SIZE,
  DEFAULT_CHUNK_BYTES,
  DEFAULT_LEVEL,
  DEFAULT_MEMORY_LEVEL,
  DEFAULT_WINDOW_BITS,
} from '../../compression/compressor-config.ts';
import { type CompressorMessage, compressorFilter } from '../compressor/config.ts';

const GZIP = 'proxy.extensions.filters.http.gzip.v3.Gzip';

type GzipMessage = MessageTypes[typeof GZIP];

/** By the numbers of CompressionLevel: DEFAULT, BEST, SPEED. */
const LEVELS = [DEFAULT_LEVEL, 9, 1];
const OLDER = 'unless compressor says it';

export const GZIP_MANIFEST: HttpFilterManifest = {
  support: {
    [GZIP]: {
      otherwise: rejected(),
      fields: {
        memory_level: supported(),
        content_length: supported(OLDER),
        compression_level: supported(),
        compression_strategy: supported(),
        content_type: supported(OLDER),
        disable_on_etag_header: supported(OLDER),
        remove_accept_encoding_header: supported(OLDER),
        window_bits: supported(),
        compressor: supported('but for its compressor_library'),
        chunk_size: CHUNK_SIZE,
      },
    },
  },
  convert(message) {
    const gzip = message as GzipMessage;
    const library = {
      kind: 'gzip',
      level: LEVELS[gzip.compression_level] ?? DEFAULT_LEVEL,
      strategy: gzip.compression_strategy,
      memoryLevel: valueOr(gzip.memory_level, DEFAULT_MEMORY_LEVEL),
      windowBits: valueOr(gzip.window_bits, DEFAULT_WINDOW_BITS),
      chunkBytes: valueOr(gzip.chunk_size, DEFAULT_CHUNK_BYTES),
    } as const;
    return compressorFilter(gzip.compressor ?? olderOf(gzip), library, 'gzip.', 'gzip.header_gzip');
  },
};

function olderOf(gzip: GzipMessage): Omit<CompressorMessage, 'compressor_library'> {
  return {
    content_length: gzip.content_length,
    content_type: gzip.content_type,
    disable_on_etag_header: gzip.disable_on_etag_header,
    remove_accept_encoding_header: gzip.remove_accept_encoding_header,
    runtime_enabled: null,
    request_direction_config: null,
    response_direction_config: null,
    choose_first: false,
  };
}
