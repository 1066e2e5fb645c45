// Messages of HTTP/1 with bodies that are compressed, read and written byte by byte.

import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { JsonObject } from './bootstrap.ts';
import type { WireClient } from './wire.ts';

export type LibraryKind = 'gzip' | 'brotli' | 'zstd';

export interface Answer {
  readonly status: number;
  /** Names in lower case; trailers as `trailer x-sum: 7`. */
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

/** A library by its kind, as filters name it. @param direction of the extension, `compressor`. */
export function libraryOf(
  direction: 'compressor' | 'decompressor',
  kind: LibraryKind,
  fields: JsonObject = {},
  name: string = kind,
): JsonObject {
  const message = kind.charAt(0).toUpperCase() + kind.slice(1);
  const type = `type.googleapis.com/envoy.extensions.compression.${kind}.${direction}.v3.${message}`;
  return { name, typed_config: { '@type': type, ...fields } };
}

const DECODE: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: (bytes) => gunzipSync(bytes),
  br: (bytes) => brotliDecompressSync(bytes),
  zstd: (bytes) => zstdDecompressSync(bytes),
};

/** The text of a body, whatever its encoding. */
export function decoded({ headers, body }: Answer): string {
  const encoding = headers['content-encoding'];
  return (encoding === undefined ? body : DECODE[encoding]!(body)).toString();
}

/** One whole answer, its chunks put together. */
export async function readAnswer(client: WireClient, hasBody = true): Promise<Answer> {
  const head = await client.until('\r\n\r\n');
  const [line, ...lines] = head.trimEnd().split('\r\n');
  const headers: Record<string, string> = {};
  for (const text of lines) {
    const colon = text.indexOf(':');
    headers[text.slice(0, colon).toLowerCase()] = text.slice(colon + 1).trim();
  }
  const status = Number(line!.split(' ')[1]);
  if (!hasBody) return { status, headers, body: Buffer.alloc(0) };
  if (headers['transfer-encoding'] !== 'chunked') {
    return { status, headers, body: await client.bytes(Number(headers['content-length'] ?? 0)) };
  }
  const pieces: Buffer[] = [];
  for (;;) {
    const size = Number.parseInt(await client.until('\r\n'), 16);
    if (size === 0) break;
    pieces.push(await client.bytes(size));
    await client.bytes(2);
  }
  for (let trailer = await client.until('\r\n'); trailer !== '\r\n'; trailer = await client.until('\r\n')) {
    headers[`trailer ${trailer.trim()}`] = '';
  }
  return { status, headers, body: Buffer.concat(pieces) };
}
