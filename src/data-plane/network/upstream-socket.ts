// A socket to an upstream. A write that fails ends what is sent, and leaves what is received alone: an upstream may have
// answered before it closed, and net.Socket would throw away the answer that lies in the kernel together with the rest.
//
// What is written after a failure is dropped as if it had been sent. Reading goes on to its end, as whoever owns the
// socket bounds it. The system tells of a reset once: if a write has met it, reading ends as if the peer had said
// its last word. Only EPIPE says that the peer really had, before the reset.

import { Socket, type SocketConstructorOpts } from 'node:net';

type Written = (error?: Error | null) => void;

export class UpstreamSocket extends Socket {
  #sendError: NodeJS.ErrnoException | null = null;
  /** Of the one write that is under way. */
  #callback: Written | null = null;
  readonly #onSendFailed: (error: NodeJS.ErrnoException) => void;

  /** @param onSendFailed called once, perhaps within a write. */
  constructor(options: SocketConstructorOpts, onSendFailed: (error: NodeJS.ErrnoException) => void) {
    super(options);
    this.#onSendFailed = onSendFailed;
  }

  /** What a write has met; nothing is sent any more then. */
  get sendError(): NodeJS.ErrnoException | null {
    return this.#sendError;
  }

  /** The end of what was received is not one that the peer has sent. */
  get isEndUntrue(): boolean {
    return this.#sendError !== null && this.#sendError.code !== 'EPIPE';
  }

  override _write(chunk: unknown, encoding: BufferEncoding, callback: Written): void {
    if (this.#drops(callback)) return;
    super._write(chunk, encoding, this.#onWritten);
  }

  override _writev(chunks: { chunk: unknown; encoding: BufferEncoding }[], callback: Written): void {
    if (this.#drops(callback)) return;
    super._writev!(chunks, this.#onWritten);
  }

  #drops(callback: Written): boolean {
    this.#callback = callback;
    if (this.#sendError === null) return false;
    callback();
    return true;
  }

  readonly #onWritten: Written = (error) => {
    if (error) {
      this.#sendError = error;
      this.#onSendFailed(error);
    }
    this.#callback!();
  };
}
