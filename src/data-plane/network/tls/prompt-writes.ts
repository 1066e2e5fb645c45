// Writes of a TLS socket that are done when the kernel has taken them.
//
// Node tells of a TLS write in a later turn, also when the kernel has taken all of it within the call: whoever wrote would
// believe that it waits, hold its memory, and stop reading on the other side. Here `write` says so at once. OpenSSL copies what
// it encrypts, so the memory is the caller's again then (I8).
//
//   write ─► Node encrypts, and gives it to the socket below ──nothing waits there──► done; Node tells later, nobody listens
//                                                            └─something does───────► done when Node tells
//
// Node's TLS takes one write at a time, and ends the process when a second one begins before it has told of the first. An
// end that overtakes it would cut off the alert that says so. Both wait for it here.
//
// This leans on what `_handle` tells: how much has been encrypted and not been accounted for (`writeQueueSize`), and the same
// of the socket below (`_parent`). Where a Node release tells neither, every write is done when Node says so.
//
// What is longer than a connection may write at once (kept-buffers.ts) is written piece by piece, each when Node has told of the one before.
//
// `tls.connect` makes sockets of its own: what Node calls to write is put in place on each of those.

import { TLSSocket } from 'node:tls';
import { type BufferKeeper, KeptBuffers, SMALL_BUFFER_BYTES } from './kept-buffers.ts';

type Written = (error?: Error | null) => void;
type Chunks = { chunk: unknown; encoding: BufferEncoding }[];

interface Handle {
  /** Bytes that are encrypted, and of which Node has not noticed yet that the socket below has them. */
  readonly writeQueueSize?: number;
  readonly _parent?: { readonly writeQueueSize?: number };
}

/**
 * What Node passes to the socket below in the call: at least seven of its buffers of ten. What is more follows in later turns,
 * and waits where nobody below sees it.
 */
const MOST_AT_ONCE = 7 * 16 * 1024;

/** What Node calls the encoding of bytes. */
const BYTES = 'buffer' as BufferEncoding;

/** Of the sockets of this thread. */
const keptBuffers = new KeptBuffers();

const WRITES = Symbol('writes');
const node = TLSSocket.prototype as Required<Pick<TLSSocket, '_write' | '_writev' | '_final'>>;

/** For sockets that we make: what stands on the class costs none of them memory. */
export class PromptTlsSocket extends TLSSocket {
  [WRITES] = new PromptWrites(this);

  override _write(chunk: unknown, encoding: BufferEncoding, callback: Written): void {
    this[WRITES].write(chunk, encoding, callback);
  }

  override _writev(chunks: Chunks, callback: Written): void {
    this[WRITES].writev(chunks, callback);
  }

  override _final(callback: Written): void {
    this[WRITES].final(callback);
  }
}

/** The same for one that Node has made. @param socket that nothing has been written to. */
export function writePromptly(socket: TLSSocket): void {
  const prompt = socket as PromptTlsSocket;
  const { _write, _writev, _final } = PromptTlsSocket.prototype;
  prompt[WRITES] = new PromptWrites(socket);
  prompt._write = _write;
  prompt._writev = _writev;
  prompt._final = _final;
}

function bytesOf(chunk: unknown, encoding: BufferEncoding): Buffer {
  return typeof chunk === 'string' ? Buffer.from(chunk, encoding) : (chunk as Buffer);
}

class PromptWrites implements BufferKeeper {
  readonly #socket: TLSSocket;
  /** Node has not told of the last write. */
  #isUntold = false;
  /** Of the last write, while it is not done. */
  #callback: Written | null = null;
  /** What waits until Node tells: at most one of the three. */
  #chunk: unknown = null;
  #encoding: BufferEncoding = 'utf8';
  #chunks: Chunks | null = null;
  #isEnding = false;
  keptBytes = 0;

  constructor(socket: TLSSocket) {
    this.#socket = socket;
  }

  write(chunk: unknown, encoding: BufferEncoding, callback: Written): void {
    if (this.#isUntold) {
      this.#chunk = chunk;
      this.#encoding = encoding;
      this.#callback = callback;
      return;
    }
    const isIdle = this.#begin(callback);
    const { length } = chunk as string | Buffer;
    const piece = this.#pieceOf(length);
    if (piece === length) node._write.call(this.#socket, chunk, encoding, this.#onTold);
    else {
      const bytes = bytesOf(chunk, encoding);
      this.#chunk = bytes.subarray(piece);
      this.#encoding = BYTES;
      node._write.call(this.#socket, bytes.subarray(0, piece), BYTES, this.#onTold);
    }
    if (isIdle) this.#settle();
  }

  writev(chunks: Chunks, callback: Written): void {
    if (this.#isUntold) {
      this.#chunks = chunks;
      this.#callback = callback;
      return;
    }
    const isIdle = this.#begin(callback);
    node._writev.call(this.#socket, this.#firstOf(chunks), this.#onTold);
    if (isIdle) this.#settle();
  }

  /** As much as may be written at once; what is more waits. */
  #firstOf(chunks: Chunks): Chunks {
    const all = chunks.reduce((sum, { chunk }) => sum + (chunk as string | Buffer).length, 0);
    let room = this.#pieceOf(all);
    if (room === all) return chunks;
    const last = chunks.findIndex(({ chunk }) => {
      room -= (chunk as string | Buffer).length;
      return room < 0;
    });
    const { chunk, encoding } = chunks[last]!;
    const bytes = bytesOf(chunk, encoding);
    const cut = (chunk as string | Buffer).length + room;
    this.#chunks = [{ chunk: bytes.subarray(cut), encoding: BYTES }, ...chunks.slice(last + 1)];
    return [...chunks.slice(0, last), { chunk: bytes.subarray(0, cut), encoding: BYTES }];
  }

  /** How much of so many bytes may be written at once. */
  #pieceOf(length: number): number {
    return length < SMALL_BUFFER_BYTES ? length : keptBuffers.pieceOf(length, this);
  }

  final(callback: Written): void {
    if (this.#isUntold) {
      this.#isEnding = true;
      this.#callback = callback;
    } else node._final.call(this.#socket, callback);
  }

  /** @returns whether nothing that the handshake has left is on its way: what is encrypted now goes down in the call. */
  #begin(callback: Written): boolean {
    this.#isUntold = true;
    this.#callback = callback;
    return this.#handle?.writeQueueSize === 0;
  }

  /** Ends the write that has just been made, if the kernel has it. */
  #settle(): void {
    const callback = this.#callback;
    if (callback === null || this.#chunk !== null || this.#chunks !== null || !this.#hasLeft()) return;
    this.#callback = null;
    callback();
  }

  #hasLeft(): boolean {
    const handle = this.#handle;
    const encrypted = handle?.writeQueueSize ?? 0;
    return encrypted > 0 && encrypted <= MOST_AT_ONCE && handle?._parent?.writeQueueSize === 0;
  }

  charge(bytes: number): void {
    if (this.keptBytes === 0) this.#socket.once('close', () => keptBuffers.release(this.keptBytes));
    this.keptBytes = bytes;
  }

  get #handle(): Handle | null {
    return (this.#socket as unknown as { readonly _handle: Handle | null })._handle;
  }

  readonly #onTold: Written = (error) => {
    this.#isUntold = false;
    const callback = this.#callback;
    this.#callback = null;
    const chunk = this.#chunk;
    const chunks = this.#chunks;
    this.#chunk = null;
    this.#chunks = null;
    // It was done: what can go wrong after that is the end of the socket, of which others tell.
    if (callback === null) return;
    if (error) callback(error);
    else if (chunk !== null) this.write(chunk, this.#encoding, callback);
    else if (chunks !== null) this.writev(chunks, callback);
    else if (this.#isEnding) node._final.call(this.#socket, callback);
    else callback();
  };
}
