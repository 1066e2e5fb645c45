// The system calls that weir needs and Node does not offer, over Node's foreign function interface: the only module that
// knows it. Either thread. Where the interface or a call is missing (another platform, a build without it) there are
// none, and callers do with less.

import { dlopen, getInt32, getRawPointer } from 'node:ffi';

/** What `poll` can say of the other end of a socket. */
export const PeerState = { alive: 0, ended: 1, reset: 2 } as const;
export type PeerState = (typeof PeerState)[keyof typeof PeerState];

/** Linux; elsewhere an end behind unread bytes cannot be seen. */
const POLLRDHUP = 0x2000;
const POLLOUT = 0x4;
const POLLERR = 0x8;
const POLLHUP = 0x10;
const POLLFD_BYTES = 8;
const EVENTS_AT = 4;
const RETURNED_EVENTS_AT = 6;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const SIG_UNBLOCK = 1;
/** As many as any C library has for a set of signals. */
const SIGNAL_SET_BYTES = 128;
const RLIMIT_NOFILE = 7;
const RLIMIT_BYTES = 16;

const SIGNATURES = {
  poll: { arguments: ['pointer', 'u64', 'i32'], return: 'i32' },
  send: { arguments: ['i32', 'pointer', 'u64', 'i32'], return: 'i64' },
  dup: { arguments: ['i32'], return: 'i32' },
  close: { arguments: ['i32'], return: 'i32' },
  pthread_sigmask: { arguments: ['i32', 'pointer', 'pointer'], return: 'i32' },
  getrlimit: { arguments: ['i32', 'pointer'], return: 'i32' },
  __errno_location: { arguments: [], return: 'pointer' },
} as const;

type Functions = ReturnType<typeof dlopen<typeof SIGNATURES>>['functions'];

export class SystemCalls {
  readonly #functions: Functions;
  /** Reused by every call of `peerStates`; grows. */
  #pollMemory: Buffer = Buffer.alloc(0);

  private constructor(functions: Functions) {
    this.#functions = functions;
  }

  /** @returns undefined where they cannot be had. Costs 2 ms: open them once a thread. */
  static open(): SystemCalls | undefined {
    if (process.platform !== 'linux') return undefined;
    try {
      // The process itself has the C library, whichever it is.
      return new SystemCalls(dlopen(null, SIGNATURES).functions);
    } catch {
      return undefined;
    }
  }

  /**
   * Whether the other ends of connected sockets have ended or reset, also behind bytes that nobody has read. Never
   * waits; 0.2 us a socket.
   * @param states  gets one PeerState per descriptor; as long as `descriptors` at least.
   * @returns false when the system refused to say; then all are `alive`.
   */
  peerStates(descriptors: readonly number[], states: Uint8Array): boolean {
    const count = descriptors.length;
    states.fill(PeerState.alive, 0, count);
    if (count === 0) return true;
    if (this.#pollMemory.length < count * POLLFD_BYTES) this.#pollMemory = Buffer.alloc(2 * count * POLLFD_BYTES);
    const memory = this.#pollMemory;
    for (let index = 0; index < count; index++) {
      const at = index * POLLFD_BYTES;
      memory.writeInt32LE(descriptors[index]!, at);
      memory.writeUInt32LE(POLLRDHUP, at + EVENTS_AT);
    }
    const signalled = this.#functions.poll(getRawPointer(memory), BigInt(count), 0);
    if (signalled <= 0) return signalled === 0;
    for (let index = 0; index < count; index++) {
      const events = memory.readUInt16LE(index * POLLFD_BYTES + RETURNED_EVENTS_AT);
      if ((events & POLLERR) !== 0) states[index] = PeerState.reset;
      else if ((events & (POLLRDHUP | POLLHUP)) !== 0) states[index] = PeerState.ended;
    }
    return true;
  }

  /** Whether a write would be taken at least in part, or fail at once. Never waits. */
  isWritable(descriptor: number): boolean {
    const memory = Buffer.alloc(POLLFD_BYTES);
    memory.writeInt32LE(descriptor, 0);
    memory.writeUInt32LE(POLLOUT, EVENTS_AT);
    return this.#functions.poll(getRawPointer(memory), 1n, 0) > 0;
  }

  /**
   * Writes to a socket without waiting, also where its descriptor is one that waits.
   * @param bytes borrowed until the return. @returns bytes taken, or minus the system's error number.
   */
  sendNow(descriptor: number, bytes: Uint8Array): number {
    const size = BigInt(bytes.length);
    const sent = this.#functions.send(descriptor, getRawPointer(bytes), size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent >= 0n ? Number(sent) : this.#lastError();
  }

  /** Lets a signal in that this thread blocks; one that has come meanwhile is delivered at once. */
  unblockSignal(signal: number): void {
    const set = Buffer.alloc(SIGNAL_SET_BYTES);
    set[(signal - 1) >> 3] = 1 << ((signal - 1) & 7);
    this.#functions.pthread_sigmask(SIG_UNBLOCK, getRawPointer(set), 0n);
  }

  /** Descriptors that this process may have open (soft limit); undefined when the system does not say. */
  descriptorLimit(): number | undefined {
    const memory = Buffer.alloc(RLIMIT_BYTES);
    if (this.#functions.getrlimit(RLIMIT_NOFILE, getRawPointer(memory)) !== 0) return undefined;
    return Number(memory.readBigUInt64LE(0));
  }

  /** A second descriptor of the same open file. @returns minus the system's error number when there is none. */
  duplicate(descriptor: number): number {
    const copy = this.#functions.dup(descriptor);
    return copy >= 0 ? copy : this.#lastError();
  }

  /** Closes what `duplicate` has opened; that of node:fs warns in a thread of descriptors that it does not know. */
  close(descriptor: number): void {
    this.#functions.close(descriptor);
  }

  #lastError(): number {
    return -getInt32(this.#functions.__errno_location(), 0);
  }
}
