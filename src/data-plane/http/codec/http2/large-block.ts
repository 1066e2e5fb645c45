// A header block that is too large for its message, whatever it says: only the table of its connection has to see it. It is decoded
// part by part as it comes, so that a connection keeps no more of it than of one that is served.

import { BLOCK_LIMIT_BYTES, isCompressionError, PartFlag } from '../../../../wasm/http2.ts';
import { Fault, type SessionFault } from './options.ts';
import type { SessionState } from './session-state.ts';

/** Beyond this the connection ends: twice what browsers keep of cookies for a site. */
const LARGE_BLOCK_LIMIT_BYTES = 16 * BLOCK_LIMIT_BYTES;

export class LargeBlock {
  readonly #session: SessionState;
  /** What has come and has not been decoded: less than a field, or than a part. */
  readonly #kept = Buffer.allocUnsafeSlow(BLOCK_LIMIT_BYTES);
  #keptBytes = 0;
  #totalBytes = 0;
  /** Of the value at hand. */
  #skippedBytes = 0;
  #isOpened = false;
  /** Method id of the request, when it is one. */
  method = 0;

  constructor(session: SessionState) {
    this.#session = session;
  }

  /** What comes next of it; borrowed. @returns what is wrong with it, or null. */
  add(bytes: Buffer, start: number, end: number): SessionFault | null {
    this.#totalBytes += end - start;
    if (this.#totalBytes > LARGE_BLOCK_LIMIT_BYTES) return Fault.blockTooLarge;
    let at = start;
    while (at < end) {
      const skipped = Math.min(this.#skippedBytes, end - at);
      this.#skippedBytes -= skipped;
      at += skipped;
      const taken = Math.min(end - at, BLOCK_LIMIT_BYTES - this.#keptBytes);
      bytes.copy(this.#kept, this.#keptBytes, at, at + taken);
      this.#keptBytes += taken;
      at += taken;
      if (this.#keptBytes < BLOCK_LIMIT_BYTES) continue;
      const fault = this.#decode(0);
      if (fault !== null) return fault;
    }
    return null;
  }

  /** All of it has come. @returns the same. */
  end(): SessionFault | null {
    return this.#skippedBytes > 0 ? Fault.compression : this.#decode(PartFlag.ENDS);
  }

  #decode(ends: number): SessionFault | null {
    const { isServer, owner, tools } = this.#session;
    if (!this.#session.hasDecoder()) return Fault.noMemory;
    owner.onBlock();
    const opens = isServer ? PartFlag.OPENS_REQUEST : PartFlag.OPENS;
    const flags = ends | (this.#isOpened ? 0 : opens);
    const read = tools.heads.decodePart(this.#session.decoder, this.#kept, 0, this.#keptBytes, flags);
    if (isCompressionError(read)) return Fault.compression;
    if (read === 0 && ends === 0) return Fault.blockTooLarge;
    if (!this.#isOpened && isServer) this.method = tools.codec.request.methodId;
    this.#isOpened = true;
    this.#skippedBytes = tools.heads.skippedBytes;
    this.#kept.copyWithin(0, read, this.#keptBytes);
    this.#keptBytes -= read;
    return null;
  }
}
