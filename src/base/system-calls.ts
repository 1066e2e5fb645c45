// The system calls that weir needs and Node does not offer, over Node's foreign function interface: the only module that
// knows it. Either thread. Where the interface or a call is missing (another platform, a build without it) there are
// none, and callers do with less.

import type * as ForeignFunctions from 'node:ffi';
import { familyOf, type IpFamily } from './address-families.ts';
import { DatagramBatch, MESSAGE_BYTES } from './datagram-batch.ts';
import { parseIpWords } from './ip-number.ts';

/** Asked for by name: an import would end the start of a Node without it. */
const foreignFunctions = withoutWarning(
  () => process.getBuiltinModule('node:ffi') as typeof ForeignFunctions | undefined,
);
const { dlopen, getInt32, getRawPointer } = foreignFunctions ?? ({} as typeof ForeignFunctions);

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
const PR_SET_DUMPABLE = 4;
const RLIMIT_NOFILE = 7;
const RLIMIT_BYTES = 16;
const SOL_IP = 0;
const SOL_IPV6 = 41;
/** Of both levels. */
const SO_ORIGINAL_DST = 80;
const IP_TRANSPARENT = 19;
const IPV6_TRANSPARENT = 75;
const INTEGER_BYTES = 4;
/** Of an IPv6 address with port, which is longer than an IPv4 one: family, port, flow, address, scope. */
const SOCKET_ADDRESS_BYTES = 28;
const PORT_AT = 2;
const IPV4_AT = 4;
const IPV6_AT = 8;

const IPV4_SOCKET_ADDRESS_BYTES = 16;
const SYSTEM_FAMILY: Readonly<Record<IpFamily, number>> = { v4: 2, v6: 10 };
/** SOCK_STREAM with SOCK_NONBLOCK and SOCK_CLOEXEC. */
const STREAM = 0x80801;
/** SOCK_DGRAM with the same. */
const DATAGRAM = 0x80802;
const UNIX_FAMILY = 1;
/** Of the address of a unix socket: the family, then the path, which ends with a NUL unless it begins with one. */
const UNIX_PATH_AT = 2;
const UNIX_PATH_BYTES = 108;
const ENAMETOOLONG = 36;
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const SOL_TCP = 6;
const TCP_INFO = 11;
/** Of what TCP_INFO tells: segments that are not acknowledged, bytes that are, and bytes that have not been sent. */
const UNACKNOWLEDGED_AT = 24;
const ACKNOWLEDGED_AT = 120;
const NOT_SENT_AT = 144;
const TCP_INFO_BYTES = 148;
/** Of the user in what SO_PEERCRED tells: process, user, group. */
const PEER_USER_AT = 4;
const PEER_BYTES = 12;
const PR_SET_PDEATHSIG = 1;
const SCM_RIGHTS = 1;
const MSG_CMSG_CLOEXEC = 0x4000_0000;
/** A message header of a 64-bit system and what it points to, in one memory, so that nothing of it is collected too early. */
const VECTOR_AT = 56;
const CONTROL_AT = 72;
const CONTROL_HEAD_BYTES = 16;
/** As many as one message may carry. */
const MOST_DESCRIPTORS = 253;
const MOST_CONTROL_BYTES = CONTROL_HEAD_BYTES + 8 * Math.ceil((INTEGER_BYTES * MOST_DESCRIPTORS) / 8);
const MOST_TEXT_BYTES = 256;

const SIGNATURES = {
  poll: { arguments: ['pointer', 'u64', 'i32'], return: 'i32' },
  send: { arguments: ['i32', 'pointer', 'u64', 'i32'], return: 'i64' },
  sendmmsg: { arguments: ['i32', 'pointer', 'u32', 'i32'], return: 'i32' },
  dup: { arguments: ['i32'], return: 'i32' },
  close: { arguments: ['i32'], return: 'i32' },
  pthread_sigmask: { arguments: ['i32', 'pointer', 'pointer'], return: 'i32' },
  getsockopt: { arguments: ['i32', 'i32', 'i32', 'pointer', 'pointer'], return: 'i32' },
  setsockopt: { arguments: ['i32', 'i32', 'i32', 'pointer', 'u32'], return: 'i32' },
  socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
  bind: { arguments: ['i32', 'pointer', 'u32'], return: 'i32' },
  connect: { arguments: ['i32', 'pointer', 'u32'], return: 'i32' },
  sendmsg: { arguments: ['i32', 'pointer', 'i32'], return: 'i64' },
  recvmsg: { arguments: ['i32', 'pointer', 'i32'], return: 'i64' },
  getrlimit: { arguments: ['i32', 'pointer'], return: 'i32' },
  prctl: { arguments: ['i32', 'u64', 'u64', 'u64', 'u64'], return: 'i32' },
  __errno_location: { arguments: [], return: 'pointer' },
} as const;

/** Of the C library of GNU alone. */
const TRIM_SIGNATURE = { malloc_trim: { arguments: ['u64'], return: 'i32' } } as const;

type Functions = ReturnType<typeof dlopen<typeof SIGNATURES>>['functions'];

let trim: ((keptBytes: bigint) => number) | undefined;

/** Gives memory that the C library keeps for later back to the system; 1 ms. @returns false where that cannot be asked for. */
export function trimAllocator(): boolean {
  if (process.platform !== 'linux' || foreignFunctions === undefined) return false;
  try {
    trim ??= dlopen(null, TRIM_SIGNATURE).functions.malloc_trim;
    trim(0n);
    return true;
  } catch {
    return false;
  }
}

/** What one message has brought. */
export interface DescriptorMessage {
  readonly text: string;
  /** Of this process now, and the receiver's to close. */
  readonly descriptors: readonly number[];
}

/** How far a TCP connection has got what was written to it to its peer. */
export interface SentState {
  /** The peer's system has all of it, and the end of the stream if that was sent. */
  readonly isAcknowledged: boolean;
  /** Since the connection began; its end counts as one. */
  readonly acknowledgedBytes: number;
}

export class SystemCalls {
  readonly #functions: Functions;
  /** Reused by every call of `peerStates`; grows. */
  #pollMemory: Buffer = Buffer.alloc(0);
  /** Of the options of sockets, and how long each is; reused by every call. */
  readonly #option = Buffer.alloc(TCP_INFO_BYTES);
  readonly #optionLength = Buffer.alloc(INTEGER_BYTES);

  private constructor(functions: Functions) {
    this.#functions = functions;
  }

  /** @returns undefined where they cannot be had. Costs 2 ms: open them once a thread. */
  static open(): SystemCalls | undefined {
    if (process.platform !== 'linux' || foreignFunctions === undefined) return undefined;
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

  newDatagramBatch(): DatagramBatch {
    return new DatagramBatch(getRawPointer);
  }

  /**
   * Sends datagrams of a batch over a connected socket, without waiting.
   * @param from the first of them. @returns how many have been taken, or minus the system's error number for none.
   */
  sendMany(descriptor: number, batch: DatagramBatch, from: number): number {
    const first = getRawPointer(batch.headers) + BigInt(from * MESSAGE_BYTES);
    const sent = this.#functions.sendmmsg(descriptor, first, batch.count - from, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent >= 0 ? sent : this.#lastError();
  }

  /** Lets a signal in that this thread blocks; one that has come meanwhile is delivered at once. */
  unblockSignal(signal: number): void {
    const set = Buffer.alloc(SIGNAL_SET_BYTES);
    set[(signal - 1) >> 3] = 1 << ((signal - 1) & 7);
    this.#functions.pthread_sigmask(SIG_UNBLOCK, getRawPointer(set), 0n);
  }

  /** Lets the system write a core file of this process. @returns whether it has agreed. */
  allowCoreDump(): boolean {
    return this.#functions.prctl(PR_SET_DUMPABLE, 1n, 0n, 0n, 0n) === 0;
  }

  /** Descriptors that this process may have open (soft limit); undefined when the system does not say. */
  descriptorLimit(): number | undefined {
    const memory = Buffer.alloc(RLIMIT_BYTES);
    if (this.#functions.getrlimit(RLIMIT_NOFILE, getRawPointer(memory)) !== 0) return undefined;
    return Number(memory.readBigUInt64LE(0));
  }

  /**
   * Where a connection meant to go that the system has redirected here; 1 us.
   * @param isIpv4 of the connection, also where it came through an IPv6 socket.
   * @returns undefined when the system knows of no redirection; otherwise perhaps the address that it came to.
   */
  originalDestination(descriptor: number, isIpv4: boolean): { readonly ip: string; readonly port: number } | undefined {
    const memory = this.#option;
    if (!this.#readOption(descriptor, isIpv4 ? SOL_IP : SOL_IPV6, SO_ORIGINAL_DST, SOCKET_ADDRESS_BYTES))
      return undefined;
    const port = memory.readUInt16BE(PORT_AT);
    if (isIpv4) return { ip: memory.subarray(IPV4_AT, IPV4_AT + 4).join('.'), port };
    const groups = [0, 2, 4, 6, 8, 10, 12, 14].map((offset) => memory.readUInt16BE(IPV6_AT + offset).toString(16));
    return { ip: groups.join(':'), port };
  }

  /** Whether an accepted socket took a connection that was meant for another address, which its local address is then. */
  isTransparent(descriptor: number, isIpv4: boolean): boolean {
    const [level, option] = isIpv4 ? [SOL_IP, IP_TRANSPARENT] : [SOL_IPV6, IPV6_TRANSPARENT];
    return this.#readOption(descriptor, level, option, INTEGER_BYTES) && this.#option.readInt32LE(0) !== 0;
  }

  /** A socket for TCP that does not wait; its descriptor is the caller's. @returns minus the system's error number without. */
  openSocket(family: IpFamily): number {
    const descriptor = this.#functions.socket(SYSTEM_FAMILY[family], STREAM, 0);
    return descriptor >= 0 ? descriptor : this.#lastError();
  }

  /**
   * A unix socket that does not wait, and sends datagrams to the one at a path; its descriptor is the caller's.
   * @param path as the system has it: a NUL at the beginning for one of Linux' abstract namespace.
   * @returns minus the system's error number without.
   */
  openDatagramSocket(path: string): number {
    return this.#openAt(path, DATAGRAM, (descriptor, address, length) =>
      this.#functions.connect(descriptor, address, length),
    );
  }

  /** The same, bound to the path: datagrams reach it there. */
  bindDatagramSocket(path: string): number {
    return this.#openAt(path, DATAGRAM, (descriptor, address, length) =>
      this.#functions.bind(descriptor, address, length),
    );
  }

  /** The same for connections, which somebody has to listen for: nobody removes the path when it is closed. */
  bindStreamSocket(path: string): number {
    return this.#openAt(path, STREAM, (descriptor, address, length) =>
      this.#functions.bind(descriptor, address, length),
    );
  }

  #openAt(path: string, type: number, place: (descriptor: number, address: bigint, length: number) => number): number {
    const bytes = Buffer.from(path);
    if (bytes.length >= UNIX_PATH_BYTES) return -ENAMETOOLONG;
    const memory = Buffer.alloc(UNIX_PATH_AT + UNIX_PATH_BYTES);
    memory.writeUInt16LE(UNIX_FAMILY, 0);
    bytes.copy(memory, UNIX_PATH_AT);
    const end = bytes[0] === 0 ? 0 : 1;
    const descriptor = this.#functions.socket(UNIX_FAMILY, type, 0);
    if (descriptor < 0) return this.#lastError();
    if (place(descriptor, getRawPointer(memory), UNIX_PATH_AT + bytes.length + end) === 0) return descriptor;
    const error = this.#lastError();
    this.close(descriptor);
    return error;
  }

  /** As openSocket, for UDP. */
  openUdpSocket(family: IpFamily): number {
    const descriptor = this.#functions.socket(SYSTEM_FAMILY[family], DATAGRAM, 0);
    return descriptor >= 0 ? descriptor : this.#lastError();
  }

  /**
   * Sends descriptors over a connected unix socket, without waiting. They stay open here; the other end gets its own.
   * @param text goes with them, 1 to 256 bytes. @param descriptors 253 at most.
   * @returns 0, or minus the system's error number.
   */
  sendDescriptors(socket: number, text: string, descriptors: readonly number[]): number {
    const controlBytes = CONTROL_HEAD_BYTES + INTEGER_BYTES * descriptors.length;
    const message = messageMemory(Buffer.byteLength(text), controlBytes);
    const control = message.subarray(CONTROL_AT);
    control.writeBigUInt64LE(BigInt(controlBytes), 0);
    control.writeInt32LE(SOL_SOCKET, 8);
    control.writeInt32LE(SCM_RIGHTS, 12);
    for (const [index, descriptor] of descriptors.entries())
      control.writeInt32LE(descriptor, CONTROL_HEAD_BYTES + INTEGER_BYTES * index);
    message.write(text, textAt(controlBytes));
    const sent = this.#functions.sendmsg(socket, getRawPointer(message), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent >= 0n ? 0 : this.#lastError();
  }

  /** The next message that has come to a unix socket, without waiting; undefined while there is none. */
  receiveDescriptors(socket: number): DescriptorMessage | undefined {
    const message = messageMemory(MOST_TEXT_BYTES, MOST_CONTROL_BYTES);
    const length = this.#functions.recvmsg(socket, getRawPointer(message), MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0n) return undefined;
    const at = textAt(MOST_CONTROL_BYTES);
    return { text: message.toString('utf8', at, at + Number(length)), descriptors: receivedDescriptors(message) };
  }

  /** Whose process is at the other end of a connected unix socket; undefined when the system does not say. */
  peerUser(socket: number): number | undefined {
    return this.#readOption(socket, SOL_SOCKET, SO_PEERCRED, PEER_BYTES)
      ? this.#option.readUInt32LE(PEER_USER_AT)
      : undefined;
  }

  /** 1 us. @returns undefined when the system does not say, as of a socket that is not TCP. */
  sentState(descriptor: number): SentState | undefined {
    if (!this.#readOption(descriptor, SOL_TCP, TCP_INFO, TCP_INFO_BYTES)) return undefined;
    if (this.#optionLength.readInt32LE(0) < TCP_INFO_BYTES) return undefined;
    const memory = this.#option;
    return {
      isAcknowledged: memory.readUInt32LE(UNACKNOWLEDGED_AT) === 0 && memory.readUInt32LE(NOT_SENT_AT) === 0,
      acknowledgedBytes: Number(memory.readBigUInt64LE(ACKNOWLEDGED_AT)),
    };
  }

  /** Has the system send this process a signal when the process that has started it ends. */
  signalAtEndOfParent(signal: number): void {
    this.#functions.prctl(PR_SET_PDEATHSIG, BigInt(signal), 0n, 0n, 0n);
  }

  /** @returns 0, or minus the system's error number. */
  setOption(descriptor: number, level: number, name: number, value: Uint8Array): number {
    const result = this.#functions.setsockopt(descriptor, level, name, getRawPointer(value), value.length);
    return result === 0 ? 0 : this.#lastError();
  }

  /** @param ip a literal without a zone. @returns 0, or minus the system's error number. */
  bind(descriptor: number, ip: string, port: number): number {
    const memory = this.#option.fill(0);
    const family = familyOf(ip);
    memory.writeUInt16LE(SYSTEM_FAMILY[family], 0);
    memory.writeUInt16BE(port, PORT_AT);
    const wordsAt = family === 'v4' ? IPV4_AT : IPV6_AT;
    for (const [index, word] of parseIpWords(ip)!.entries()) memory.writeUInt32BE(word >>> 0, wordsAt + 4 * index);
    const length = family === 'v4' ? IPV4_SOCKET_ADDRESS_BYTES : SOCKET_ADDRESS_BYTES;
    const result = this.#functions.bind(descriptor, getRawPointer(memory), length);
    return result === 0 ? 0 : this.#lastError();
  }

  #readOption(descriptor: number, level: number, option: number, length: number): boolean {
    this.#optionLength.writeInt32LE(length);
    const memory = getRawPointer(this.#option);
    const result = this.#functions.getsockopt(descriptor, level, option, memory, getRawPointer(this.#optionLength));
    return result === 0;
  }

  /** A second descriptor of the same open file. @returns minus the system's error number when there is none. */
  duplicate(descriptor: number): number {
    const copy = this.#functions.dup(descriptor);
    return copy >= 0 ? copy : this.#lastError();
  }

  /** Closes what `duplicate` or `openSocket` has opened; that of node:fs warns in a thread of descriptors that it does not know. */
  close(descriptor: number): void {
    this.#functions.close(descriptor);
  }

  #lastError(): number {
    return -getInt32(this.#functions.__errno_location(), 0);
  }
}

/** That a module is experimental, Node says on standard error, which may be somebody else's. */
function withoutWarning<Result>(load: () => Result): Result {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

function textAt(controlBytes: number): number {
  return CONTROL_AT + 8 * Math.ceil(controlBytes / 8);
}

/** A message header, the one vector of its text, room for what controls it, and for the text. */
function messageMemory(textBytes: number, controlBytes: number): Buffer {
  const at = textAt(controlBytes);
  const memory = Buffer.alloc(at + textBytes);
  const start = getRawPointer(memory);
  memory.writeBigUInt64LE(start + BigInt(VECTOR_AT), 16);
  memory.writeBigUInt64LE(1n, 24);
  memory.writeBigUInt64LE(start + BigInt(CONTROL_AT), 32);
  memory.writeBigUInt64LE(BigInt(controlBytes), 40);
  memory.writeBigUInt64LE(start + BigInt(at), VECTOR_AT);
  memory.writeBigUInt64LE(BigInt(textBytes), VECTOR_AT + 8);
  return memory;
}

function receivedDescriptors(message: Buffer): number[] {
  const control = message.subarray(CONTROL_AT, CONTROL_AT + Number(message.readBigUInt64LE(40)));
  if (control.length < CONTROL_HEAD_BYTES) return [];
  const end = Math.min(Number(control.readBigUInt64LE(0)), control.length);
  const isRights = control.readInt32LE(8) === SOL_SOCKET && control.readInt32LE(12) === SCM_RIGHTS;
  const descriptors: number[] = [];
  for (let at = CONTROL_HEAD_BYTES; isRights && at + INTEGER_BYTES <= end; at += INTEGER_BYTES)
    descriptors.push(control.readInt32LE(at));
  return descriptors;
}
