// Reads of accepted sockets into memory that many of them share. Node by itself allocates 64 KiB for each read from a socket
// that a server has accepted, which is what a connection may then have to keep until the other side takes it. Here the kernel
// fills one buffer over and over: whoever wants to keep what came copies it, and under a low limit less comes at once.
//
// This leans on what net.Socket does for its option `onread`, which sockets of a server do not get. Where a Node release
// does otherwise nothing is shared and nothing limited; a test says so.

import { Socket } from 'node:net';

/** What Node reads at once by itself. */
export const NODE_READ_BYTES = 64 * 1024;
/** Reads below this cost more than the memory that they save. */
export const LEAST_READ_BYTES = 1024;

/** What becomes of a read: `buffer` is borrowed until return. @returns false to stop reading. */
export type ReadCallback = (this: Socket, length: number, buffer: Buffer) => boolean;

interface ReadHandle {
  useUserBuffer?(buffer: Uint8Array): void;
}

type Internals = Socket & { readonly _handle?: ReadHandle | null } & Record<symbol, unknown>;

// What Node keeps of the option lies under these. A socket without a descriptor has the same ones.
const KEYS = Object.getOwnPropertySymbols(new Socket());
const BUFFER = keyOf('kBuffer');
const CALLBACK = keyOf('kBufferCb');
const NEXT = keyOf('kBufferGen');

function keyOf(description: string): symbol | undefined {
  return KEYS.find((key) => key.description === description);
}

/** How many bytes a read may bring under a limit of the buffers of a connection. */
export function readLimit(bufferLimitBytes: number): number {
  return Math.max(bufferLimitBytes, LEAST_READ_BYTES);
}

/**
 * Has the reads of an accepted socket fill `buffer`, or the one that they fill already, and go to `onRead`.
 * @returns false where that cannot be had: the socket is as it was.
 */
export function readInto(socket: Socket, buffer: Buffer, onRead: ReadCallback): boolean {
  if (redirectReads(socket, onRead)) return true;
  const internals = socket as Internals;
  const handle = internals._handle;
  if (BUFFER === undefined || CALLBACK === undefined || !(BUFFER in socket) || !(CALLBACK in socket)) return false;
  if (typeof handle?.useUserBuffer !== 'function') return false;
  internals[BUFFER] = buffer;
  internals[CALLBACK] = onRead;
  handle.useUserBuffer(buffer);
  return true;
}

/** The same, where each read may fill another buffer, of which `next` is asked before it. For a socket that fills none yet. */
export function readIntoNext(socket: Socket, next: () => Buffer, onRead: ReadCallback): boolean {
  if (NEXT === undefined || !(NEXT in socket) || !readInto(socket, next(), onRead)) return false;
  (socket as Internals)[NEXT] = next;
  return true;
}

/** As `readInto` does where the socket has a buffer already, but for a socket that allocates for its reads, which goes on to. */
export function redirectReads(socket: Socket, onRead: ReadCallback): boolean {
  const internals = socket as Internals;
  if (BUFFER === undefined || CALLBACK === undefined || !internals[BUFFER]) return false;
  internals[CALLBACK] = onRead;
  return true;
}

/** By `push`, as Node's own reads go: whoever owns the socket may have put something in its place. */
export function pushCopy(this: Socket, length: number, buffer: Buffer): boolean {
  return this.push(Buffer.copyBytesFrom(buffer, 0, length));
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
    return readInto(socket, this.#buffer, pushCopy);
  }
}
