// How the bytes of a TLS socket get to its owner without the Readable between them: Node decrypts into memory that the owner brings, or
// that all such connections of the worker share, and what lies there is handed on before the next record.
//
// One read of the kernel may bring several records, and Node hands over all of them whatever is said to the first. What comes
// behind a stop is kept here, and so is the end that comes behind it; both follow when reading goes on. That is never more than
// one read of the kernel brings. It is not read into the owner's memory, in which it may keep what it has stopped at.

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { HeldBytes } from '../held-bytes.ts';
import { readInto, readIntoNext } from '../shared-reads.ts';

/** What one record holds at most (RFC 8446 section 5.1). */
const RECORD_BYTES = 16 * 1024;
/** For owners that bring none, or may need it for what they have. */
const shared = Buffer.allocUnsafeSlow(RECORD_BYTES);

const READS = Symbol('reads');

type ReadSocket = Socket & { [READS]?: SecuredReads };

/** Where bytes and ends go. */
export interface SecuredDelivery {
  /** @param chunk borrowed, unless the owner keeps what it gets. @returns false to stop. */
  bytes(socket: Socket, chunk: Buffer, length: number): boolean;
  end(socket: Socket): void;
}

/** Null for a socket that is read otherwise. */
export function securedReadsOf(socket: Socket): SecuredReads | null {
  return (socket as ReadSocket)[READS] ?? null;
}

export class SecuredReads {
  readonly #delivery: SecuredDelivery;
  /** The owner can do with borrowed bytes. */
  isBorrowed = false;
  #isStopped = false;
  #isResuming = false;
  /** The end has come behind bytes that wait. */
  #isEnded = false;
  /** What has come behind a stop; null before the first time. */
  #held: HeldBytes | null = null;

  /**
   * Has the socket read past its Readable from now on.
   * @param borrowed what every read fills; null for memory of ours.
   * @returns whether it does: Node cannot, or bytes wait in the Readable already, and the socket is as it was.
   */
  static begin(socket: TLSSocket, borrowed: Buffer | null, delivery: SecuredDelivery): boolean {
    if (socket.readableLength > 0 || !readInto(socket, borrowed ?? shared, onRead)) return false;
    (socket as ReadSocket)[READS] = new SecuredReads(delivery);
    return true;
  }

  /** The same, where the owner says before each read what that may fill. */
  static beginInto(socket: TLSSocket, nextMemory: () => Buffer, delivery: SecuredDelivery): boolean {
    if (socket.readableLength > 0) return false;
    const reads = new SecuredReads(delivery);
    reads.isBorrowed = true;
    if (!readIntoNext(socket, () => (reads.#isStopped ? shared : nextMemory()), onRead)) return false;
    (socket as ReadSocket)[READS] = reads;
    return true;
  }

  private constructor(delivery: SecuredDelivery) {
    this.#delivery = delivery;
  }

  /** @returns false to stop. */
  read(socket: Socket, length: number, buffer: Buffer): boolean {
    if (!this.#isStopped) {
      this.#isStopped = !this.#deliver(socket, length, buffer);
    } else {
      this.#held ??= new HeldBytes();
      this.#held.append(buffer, 0, length);
    }
    return !this.#isStopped;
  }

  end(socket: Socket): void {
    if (this.#isStopped) this.#isEnded = true;
    else this.#delivery.end(socket);
  }

  /** Reads on after a stop. Bytes come later. */
  resume(socket: Socket): void {
    if (this.#isResuming) return;
    this.#isResuming = true;
    process.nextTick(goOn, this, socket);
  }

  goOn(socket: Socket): void {
    this.#isResuming = false;
    if (socket.destroyed) return;
    const held = this.#held?.take();
    if (held !== undefined && held.length > 0 && !this.#delivery.bytes(socket, held, held.length)) return;
    this.#isStopped = false;
    if (this.#isEnded) {
      this.#isEnded = false;
      this.#delivery.end(socket);
    } else socket.read(0);
  }

  #deliver(socket: Socket, length: number, buffer: Buffer): boolean {
    const chunk = this.isBorrowed ? buffer : Buffer.copyBytesFrom(buffer, 0, length);
    return this.#delivery.bytes(socket, chunk, length);
  }
}

function onRead(this: Socket, length: number, buffer: Buffer): boolean {
  return securedReadsOf(this)!.read(this, length, buffer);
}

function goOn(reads: SecuredReads, socket: Socket): void {
  reads.goOn(socket);
}
