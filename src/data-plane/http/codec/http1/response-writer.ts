// Writes the responses of one connection to its client, each with the body framing that this client understands, and
// counts what it is given of them:
//
//   raw        the upstream's own framing, handed on byte for byte
//   chunk      a body that ends with its upstream connection, for a client whose connection stays
//   dechunk    a chunked body for an HTTP/1.0 client; the end of the connection ends it

import type { Socket } from 'node:net';
import { HTTP_STATS } from '../../../../stats/index.ts';
import { BufferedBytes } from '../../../network/buffered-bytes.ts';
import type { WorkerContext } from '../../../worker-context.ts';
import { Dechunker } from '../../chunk-framing.ts';

export type BodyMode = 'raw' | 'chunk' | 'dechunk';

const { downstream_cx_tx_bytes_buffered, downstream_cx_tx_bytes_total } = HTTP_STATS.index;

const LAST_CHUNK = '0\r\n\r\n';

export class ResponseWriter {
  readonly #socket: Socket;
  readonly #context: WorkerContext;
  /** First cell of HTTP_STATS. */
  readonly #statBase: number;
  readonly #unsent: BufferedBytes;
  #mode: BodyMode = 'raw';
  #dechunker: Dechunker | null = null;

  constructor(socket: Socket, context: WorkerContext, statBase: number) {
    this.#socket = socket;
    this.#context = context;
    this.#statBase = statBase;
    this.#unsent = new BufferedBytes(context, statBase + downstream_cx_tx_bytes_buffered);
  }

  /** What is written next belongs to another response. */
  begin(mode: BodyMode): void {
    this.#mode = mode;
    this.#dechunker = mode === 'dechunk' ? new Dechunker() : null;
  }

  /** Writes what has a framing of its own: an interim response, or one that is ready as it is. */
  writeText(text: string): void {
    this.#count(text.length);
    if (!this.#context.writer.text(this.#socket, text)) this.#noteUnsent();
  }

  /**
   * Writes body bytes behind a head or nothing. With `isPinnable` the bytes stay untouched until `drain` when
   * false is returned; otherwise they are copied where needed.
   * @returns false when a part waits for `drain`.
   */
  write(head: string, bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean {
    const isTaken = this.#write(head, bytes, start, end, isEnd, isPinnable);
    if (!isTaken) this.#noteUnsent();
    return isTaken;
  }

  /** The kernel has taken everything, or the connection is gone. */
  noteSent(): void {
    this.#unsent.note(0);
  }

  #noteUnsent(): void {
    this.#unsent.note(this.#socket.writableLength);
  }

  #write(head: string, bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean {
    this.#count(head.length + end - start);
    if (this.#mode === 'chunk') return this.#writeChunk(head, bytes, start, end, isEnd, isPinnable);
    const { writer } = this.#context;
    if (this.#dechunker !== null) {
      const data = this.#dechunker.decode(bytes, start, end);
      return head.length + data.length === 0 || writer.copied(this.#socket, head, data, 0, data.length);
    }
    if (head.length + end - start === 0) return true;
    if (isPinnable) return writer.pinned(this.#socket, head, bytes, start, end, '');
    return writer.copied(this.#socket, head, bytes, start, end);
  }

  #writeChunk(head: string, bytes: Buffer, start: number, end: number, isEnd: boolean, isPinnable: boolean): boolean {
    const { writer } = this.#context;
    const length = end - start;
    const after = (length > 0 ? '\r\n' : '') + (isEnd ? LAST_CHUNK : '');
    const before = length > 0 ? `${head}${length.toString(16)}\r\n` : head;
    if (isPinnable) return writer.pinned(this.#socket, before, bytes, start, end, after);
    if (length === 0) return before.length + after.length === 0 || writer.text(this.#socket, before + after);
    const isSent = writer.copied(this.#socket, before, bytes, start, end);
    return writer.text(this.#socket, after) && isSent;
  }

  #count(bytes: number): void {
    this.#context.stats.values[this.#statBase + downstream_cx_tx_bytes_total]! += bytes;
  }
}
