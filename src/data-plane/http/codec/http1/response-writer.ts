// Writes one response to a downstream socket, with the body framing that this client understands:
//
//   raw        the upstream's own framing, handed on byte for byte
//   chunk      a body that ends with its upstream connection, for a client whose connection stays
//   dechunk    a chunked body for an HTTP/1.0 client; the end of the connection ends it

import type { Socket } from 'node:net';
import type { SocketWriter } from '../../../network/socket-writer.ts';
import { Dechunker } from '../../chunk-framing.ts';

export type BodyMode = 'raw' | 'chunk' | 'dechunk';

const LAST_CHUNK = '0\r\n\r\n';

export class ResponseWriter {
  readonly #socket: Socket;
  readonly #writer: SocketWriter;
  readonly #mode: BodyMode;
  readonly #dechunker: Dechunker | null;

  constructor(socket: Socket, writer: SocketWriter, mode: BodyMode) {
    this.#socket = socket;
    this.#writer = writer;
    this.#mode = mode;
    this.#dechunker = mode === 'dechunk' ? new Dechunker() : null;
  }

  /**
   * Writes body bytes behind a head or nothing. With `isPinnable` the bytes stay untouched until `drain` when
   * false is returned; otherwise they are copied where needed.
   * @returns false when a part waits for `drain`.
   */
  write(head: string, bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean {
    if (this.#mode === 'chunk') return this.#writeChunk(head, bytes, start, end, isEnd, isPinnable);
    if (this.#dechunker !== null) {
      const data = this.#dechunker.decode(bytes, start, end);
      return head.length + data.length === 0 || this.#writer.copied(this.#socket, head, data, 0, data.length);
    }
    if (head.length + end - start === 0) return true;
    if (isPinnable) return this.#writer.pinned(this.#socket, head, bytes, start, end, '');
    return this.#writer.copied(this.#socket, head, bytes, start, end);
  }

  #writeChunk(head: string, bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean {
    const length = end - start;
    const after = (length > 0 ? '\r\n' : '') + (isEnd ? LAST_CHUNK : '');
    const before = length > 0 ? `${head}${length.toString(16)}\r\n` : head;
    if (isPinnable) return this.#writer.pinned(this.#socket, before, bytes, start, end, after);
    if (length === 0) return before.length + after.length === 0 || this.#writer.text(this.#socket, before + after);
    const isSent = this.#writer.copied(this.#socket, before, bytes, start, end);
    return this.#writer.text(this.#socket, after) && isSent;
  }
}
