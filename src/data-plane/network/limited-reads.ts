// Reads of accepted sockets that stay below a limit. Node reads up to 64 KiB at once from a socket that a server has
// accepted, which is what a connection may then have to keep until the other side takes it; under a lower limit the kernel
// gets a smaller buffer, which all connections of a worker share, and what came is copied out of it.
//
// This leans on what net.Socket does for its option `onread`, which sockets of a server do not get. Where a Node release
// does otherwise nothing is limited; a test says so.

import type { Socket } from 'node:net';

/** What Node reads at once by itself. */
export const NODE_READ_BYTES = 64 * 1024;
/** Reads below this cost more than the memory that they save. */
export const LEAST_READ_BYTES = 1024;

interface ReadHandle {
  useUserBuffer?(buffer: Uint8Array): void;
}

type Internals = Socket & { readonly _handle?: ReadHandle | null } & Record<symbol, unknown>;

/** How many bytes a read may bring under a limit of the buffers of a connection. */
export function readLimit(bufferLimitBytes: number): number {
  return Math.max(bufferLimitBytes, LEAST_READ_BYTES);
}

export class LimitedReads {
  readonly #buffer: Buffer;

  /** @returns null when Node reads no more than this by itself. */
  static below(bufferLimitBytes: number): LimitedReads | null {
    const bytes = readLimit(bufferLimitBytes);
    return bytes < NODE_READ_BYTES ? new LimitedReads(bytes) : null;
  }

  private constructor(bytes: number) {
    this.#buffer = Buffer.allocUnsafeSlow(bytes);
  }

  /** @param socket just accepted: nothing has been read. @returns whether its reads are limited from now on. */
  apply(socket: Socket): boolean {
    const internals = socket as Internals;
    const handle = internals._handle;
    const symbols = Object.getOwnPropertySymbols(socket);
    const bufferKey = symbols.find((symbol) => symbol.description === 'kBuffer');
    const callbackKey = symbols.find((symbol) => symbol.description === 'kBufferCb');
    if (bufferKey === undefined || callbackKey === undefined || typeof handle?.useUserBuffer !== 'function')
      return false;
    internals[bufferKey] = this.#buffer;
    // By `push`, as Node's own reads go: whoever owns the socket may have put something in its place.
    internals[callbackKey] = (length: number, buffer: Buffer): boolean =>
      socket.push(Buffer.copyBytesFrom(buffer, 0, length));
    handle.useUserBuffer(this.#buffer);
    return true;
  }
}
