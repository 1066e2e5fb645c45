// Streams of zlib, brotli and zstd. Their work is done by the threads of libuv, not in the event loop. zlib is loaded
// by the first that needs one.

import type { Transform } from 'node:stream';
import type { ZstdOptions } from 'node:zlib';
import type { CompressorLibrary, DecompressorLibrary } from './settings.ts';

type Zlib = typeof import('node:zlib');

const DICTIONARY_MAGIC = 0xec30a437;
const FRAME_MAGIC = 0xfd2fb528;
/** Peers say how much memory they want; more than 8 MiB is not theirs to ask for (RFC 9659). */
const MAX_WINDOW_BITS = 23;
/** Enough of a frame to hold the name of its dictionary. */
export const ZSTD_HEAD_BYTES = 10;
/** Octets of that name, by the lowest bits of the descriptor. */
const NAME_BYTES = [0, 1, 2, 4];

function zlib(): Zlib {
  return process.getBuiltinModule('node:zlib');
}

/** All that has been written comes out before a write is said to be done. @throws where there is no memory for one. */
export function createCompressor(library: CompressorLibrary): Transform {
  const { constants, createGzip, createBrotliCompress, createZstdCompress } = zlib();
  const chunkSize = library.chunkBytes;
  switch (library.kind) {
    case 'gzip': {
      const { level, strategy, memoryLevel: memLevel, windowBits } = library;
      return createGzip({ flush: constants.Z_SYNC_FLUSH, chunkSize, level, strategy, memLevel, windowBits });
    }
    case 'brotli': {
      const params = {
        [constants.BROTLI_PARAM_QUALITY]: library.quality,
        [constants.BROTLI_PARAM_MODE]: library.mode,
        [constants.BROTLI_PARAM_LGWIN]: library.windowBits,
        [constants.BROTLI_PARAM_LGBLOCK]: library.blockBits,
        [constants.BROTLI_PARAM_DISABLE_LITERAL_CONTEXT_MODELING]: library.usesLiteralContexts ? 0 : 1,
      };
      return createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH, chunkSize, params });
    }
    default: {
      const { level, strategy, hasChecksum, dictionary } = library;
      const params = {
        [constants.ZSTD_c_compressionLevel]: level,
        [constants.ZSTD_c_checksumFlag]: hasChecksum ? 1 : 0,
        ...(strategy === 0 ? {} : { [constants.ZSTD_c_strategy]: strategy }),
      };
      const options: ZstdOptions = { flush: constants.ZSTD_e_flush, chunkSize, params };
      return createZstdCompress(dictionary.length === 0 ? options : { ...options, dictionary: bufferOf(dictionary) });
    }
  }
}

/**
 * What stands behind the end of a body is an error, whatever the encoding: nobody would see it. Zeros behind gzip are padding.
 * @param first what comes first, of which `ZSTD_HEAD_BYTES` are needed where zstd has dictionaries. @throws as above.
 */
export function createDecompressor(library: DecompressorLibrary, first: Buffer): Transform {
  const { constants, createGunzip, createBrotliDecompress, createZstdDecompress } = zlib();
  const chunkSize = library.chunkBytes;
  const junk = { rejectGarbageAfterEnd: true };
  switch (library.kind) {
    case 'gzip':
      return createGunzip({ flush: constants.Z_SYNC_FLUSH, chunkSize, windowBits: library.windowBits });
    case 'brotli': {
      const disabled = library.reallocatesRing ? 0 : 1;
      const params = { [constants.BROTLI_DECODER_PARAM_DISABLE_RING_BUFFER_REALLOCATION]: disabled };
      return createBrotliDecompress({ ...junk, flush: constants.BROTLI_OPERATION_FLUSH, chunkSize, params });
    }
    default: {
      const dictionary = dictionaryFor(library.dictionaries, first);
      const params = { [constants.ZSTD_d_windowLogMax]: MAX_WINDOW_BITS };
      const options: ZstdOptions = { ...junk, flush: constants.ZSTD_e_flush, chunkSize, params };
      return createZstdDecompress(dictionary === undefined ? options : { ...options, dictionary });
    }
  }
}

/** The one that a frame names; one without a name for a frame that names none. */
export function dictionaryFor(dictionaries: readonly Uint8Array[], first: Buffer): Buffer | undefined {
  const wanted = frameDictionary(first);
  return dictionaries.map(bufferOf).find((dictionary) => dictionaryName(dictionary) === wanted);
}

/** 0 for one that is mere content. */
function dictionaryName(dictionary: Buffer): number {
  return dictionary.length >= 8 && dictionary.readUInt32LE(0) === DICTIONARY_MAGIC ? dictionary.readUInt32LE(4) : 0;
}

/** RFC 8878 section 3.1.1.1. 0 for none. */
function frameDictionary(frame: Buffer): number {
  if (frame.length < ZSTD_HEAD_BYTES || frame.readUInt32LE(0) !== FRAME_MAGIC) return 0;
  const descriptor = frame[4]!;
  const bytes = NAME_BYTES[descriptor & 3]!;
  const isSingleSegment = (descriptor & 0x20) !== 0;
  return bytes === 0 ? 0 : frame.readUIntLE(isSingleSegment ? 5 : 6, bytes);
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
