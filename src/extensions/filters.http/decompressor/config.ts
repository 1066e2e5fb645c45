// Decompressor message → settings of the decompressor filter.

import {
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  runtimeFlagOf,
  supported,
} from '../../../config/index.ts';
import {
  DECOMPRESSOR_LIBRARY,
  DECOMPRESSOR_LIBRARY_SUPPORT,
  decompressorLibraryOf,
} from '../../compression/decompressor-config.ts';
import type { DecompressorLibrary } from '../../compression/settings.ts';
import type { DecompressorSettings, DirectionCounter, DirectionSettings, FailureCounters } from './settings.ts';

const DECOMPRESSOR = 'proxy.extensions.filters.http.decompressor.v3.Decompressor';

type DecompressorMessage = MessageTypes[typeof DECOMPRESSOR];
type Common = NonNullable<MessageTypes[`${typeof DECOMPRESSOR}.CommonDirectionConfig`]>;

const COUNTERS: readonly DirectionCounter[] = [
  'decompressed',
  'not_decompressed',
  'total_uncompressed_bytes',
  'total_compressed_bytes',
];

/** What each library calls what goes wrong. */
const FAILURES: Readonly<Record<DecompressorLibrary['kind'], FailureCounters>> = {
  gzip: {
    byCode: {
      Z_ERRNO: 'zlib_errno',
      Z_STREAM_ERROR: 'zlib_stream_error',
      Z_MEM_ERROR: 'zlib_mem_error',
      Z_BUF_ERROR: 'zlib_buf_error',
      Z_VERSION_ERROR: 'zlib_version_error',
    },
    others: 'zlib_data_error',
    bombs: 'zlib_data_error',
  },
  brotli: { byCode: {}, others: 'brotli_error', bombs: 'brotli_output_overflow' },
  zstd: {
    byCode: {
      ZSTD_error_dictionary_corrupted: 'zstd_dictionary_error',
      ZSTD_error_dictionary_wrong: 'zstd_dictionary_error',
      ZSTD_error_checksum_wrong: 'zstd_checksum_error',
      ZSTD_error_memory_allocation: 'zstd_memory_error',
    },
    others: 'zstd_generic_error',
    bombs: 'zstd_generic_error',
  },
};

export const DECOMPRESSOR_MANIFEST: HttpFilterManifest = {
  support: {
    [DECOMPRESSOR]: {
      otherwise: rejected(),
      fields: {
        decompressor_library: DECOMPRESSOR_LIBRARY,
        request_direction_config: supported(),
        response_direction_config: supported(),
      },
    },
    [`${DECOMPRESSOR}.CommonDirectionConfig`]: {
      otherwise: rejected(),
      fields: { enabled: supported(), ignore_no_transform_header: supported() },
    },
    [`${DECOMPRESSOR}.RequestDirectionConfig`]: {
      otherwise: rejected(),
      fields: { common_config: supported(), advertise_accept_encoding: supported() },
    },
    [`${DECOMPRESSOR}.ResponseDirectionConfig`]: { otherwise: rejected(), fields: { common_config: supported() } },
    ...DECOMPRESSOR_LIBRARY_SUPPORT,
  },
  convert(message, at, conversion) {
    const decompressor = message as DecompressorMessage;
    const { request_direction_config: request, response_direction_config: response } = decompressor;
    const extension = decompressor.decompressor_library;
    // Field rules let nothing else through.
    const library = extension && decompressorLibraryOf(extension, `${at}.decompressor_library`, conversion);
    if (!library) return undefined;
    const prefix = `decompressor.${extension.name}.${library.kind}.`;
    const settings: DecompressorSettings = {
      library,
      advertises: request?.advertise_accept_encoding?.value ?? true,
      request: directionOf(request?.common_config ?? null, `${prefix}request.`),
      response: directionOf(response?.common_config ?? null, `${prefix}response.`),
      failures: failuresOf(library.kind, `${prefix}decompressor_library.`),
    };
    const { byCode, others, bombs } = settings.failures;
    const counters = new Set([
      ...Object.values(settings.request.counters),
      ...Object.values(settings.response.counters),
      ...Object.values(byCode),
      others,
      bombs,
    ]);
    return { name: 'filters.http.decompressor', settings, counters: [...counters] };
  },
};

function directionOf(common: Common | null, prefix: string): DirectionSettings {
  const counters = COUNTERS.map((name) => [name, prefix + name]);
  return {
    enabled: runtimeFlagOf(common?.enabled ?? null, true),
    ignoresNoTransform: common?.ignore_no_transform_header ?? false,
    counters: Object.fromEntries(counters) as DirectionSettings['counters'],
  };
}

function failuresOf(kind: DecompressorLibrary['kind'], prefix: string): FailureCounters {
  const { byCode, others, bombs } = FAILURES[kind];
  const named = Object.entries(byCode).map(([code, name]) => [code, prefix + name]);
  return { byCode: Object.fromEntries(named), others: prefix + others, bombs: prefix + bombs };
}
