// How bytes get from a socket to its owner, in one place. Two ways in, with identical results:
//
//   lean     accepted sockets: `push` of this one socket is shadowed, so that bytes skip the Readable machinery, and
//            owners that can do with borrowed bytes have them read into one buffer of the worker (shared-reads.ts)
//            upstream sockets: the documented `onread` option with buffers of ours, so that nothing is allocated
//   events   plain `data` events on both; always works, and is what the lean way is tested against
//
// The lean way for accepted sockets leans on how net.Socket hands over what it has read. `chooseReadMode` tries
// it at start-up (data, stop, re-arm, end) and falls back to events should a Node release behave otherwise.
//
// Rules of the lean way, each learnt from a failure: push(null) is the end of the stream and belongs to the
// original; a false result stops reading, and resume() does not start it again, because the Readable believes
// that a read is under way: an empty push to the original does. It never mixes with pause().
// A TLS socket has its lean way of its own (tls/secured-reads.ts): one read of the kernel may bring several of its records, and it
// hands over all of them whatever is returned for the first.
//
// Every socket is made with a high-water mark of 1: then `write` returns true exactly when the kernel has taken
// everything, and false when the written memory must stay untouched until `drain`.
//
// Upstream sockets are read to their end also when nothing can be sent any more (upstream-socket.ts). Accepted ones are
// not: a client that takes no answer has given up its request, and the reset of a proxied one is passed on.

import { type NetConnectOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type Address, systemPath } from '../../base/address.ts';
import { type DescriptorBudget, descriptorOf } from '../../base/descriptor-budget.ts';
import { beginConnection, type ConnectionOrigin, type OriginOptions } from '../../base/own-sockets.ts';
import type { SystemCalls } from '../../base/system-calls.ts';
import type { KeepaliveSettings } from '../../snapshot/index.ts';
import { pushCopy, readInto, redirectReads } from './shared-reads.ts';
import { type SecuredDelivery, SecuredReads, securedReadsOf } from './tls/secured-reads.ts';
import { UpstreamSocket } from './upstream-socket.ts';

export type ReadMode = 'lean' | 'events';

/** Options under which a server must create accepted sockets. */
export const ACCEPTED_SOCKET_OPTIONS = { highWaterMark: 1, allowHalfOpen: true, noDelay: true } as const;

/** Owner of a socket. Its methods run inside the socket's callbacks and must not throw for what a peer does. */
export interface SocketOwner {
  /**
   * @param chunk the first `length` bytes are new. Accepted sockets: the owner may keep the chunk, unless `attachAccepted`
   *   has said that it is borrowed. Upstream sockets: borrowed until return.
   * @returns false to stop reading; `resumeReading` starts it again.
   */
  onBytes(chunk: Buffer, length: number): boolean;
  /** The peer has sent its last byte. */
  onEnd(): void;
  /** All that was written has left for the kernel. */
  onDrain(): void;
  /** The last event. `error` is what broke the connection, or null. */
  onClose(error: NodeJS.ErrnoException | null): void;
  /** An invariant broke inside one of these methods: log it and let go of everything. The socket is reset then. */
  onFault(error: unknown): void;
}

/** An owner behind which another one may stand that gets what it passes on. */
export interface SocketStep extends SocketOwner {
  /** It stays where it is when the socket is given to somebody else, who becomes the next. */
  readonly isLasting: boolean;
  next: SocketOwner | null;
}

export interface UpstreamSocketOwner extends SocketOwner {
  onConnect(): void;
  /** The buffer that the next read may fill; asked before the first read and after each `onBytes`. */
  readBuffer(): Buffer;
  /**
   * Nothing can be sent any more; what is written is dropped. What the upstream has sent before is still to be read:
   * the owner bounds how long that may take (LastBytes). Perhaps called within a write.
   */
  onSendFailed(error: NodeJS.ErrnoException): void;
}

const OWNER = Symbol('owner');
const LAST_ERROR = Symbol('lastError');
const UNDERLYING = Symbol('underlying');

interface OwnedSocket extends Socket {
  [OWNER]: SocketOwner;
  [LAST_ERROR]: NodeJS.ErrnoException | null;
}

type OwnedUpstream = UpstreamSocket & OwnedSocket;

const EMPTY = Buffer.alloc(0);
const originalPush = Socket.prototype.push;

/**
 * The boundary of a connection: what is thrown inside is a bug, and costs this connection only. Every call of an
 * owner goes through here or through `deliver`.
 */
function fault(socket: OwnedSocket, error: unknown): void {
  try {
    socket[OWNER].onFault(error);
  } finally {
    // What it cuts must not look complete.
    resetSocket(socket);
  }
}

function deliver(socket: OwnedSocket, chunk: Buffer, length: number): boolean {
  try {
    return socket[OWNER].onBytes(chunk, length);
  } catch (error) {
    fault(socket, error);
    return false;
  }
}

function leanPush(this: OwnedSocket, chunk: Buffer | null): boolean {
  return chunk === null ? originalPush.call(this, null) : deliver(this, chunk, chunk.length);
}

/** What was read into shared memory, for an owner that borrows it. */
function leanRead(this: Socket, length: number, buffer: Buffer): boolean {
  return deliver(this as OwnedSocket, buffer, length);
}

function onData(this: OwnedSocket, chunk: Buffer): void {
  if (!deliver(this, chunk, chunk.length)) this.pause();
}

function onEnd(this: OwnedSocket): void {
  try {
    this[OWNER].onEnd();
  } catch (error) {
    fault(this, error);
  }
}

/** The end of a socket that may be one of TLS, which is told of it behind what waits. */
function onEndInOrder(this: OwnedSocket): void {
  const reads = securedReadsOf(this);
  if (reads === null) onEnd.call(this);
  else reads.end(this);
}

function onDrain(this: OwnedSocket): void {
  try {
    this[OWNER].onDrain();
  } catch (error) {
    fault(this, error);
  }
}

function onError(this: OwnedSocket, error: NodeJS.ErrnoException): void {
  this[LAST_ERROR] = error;
}

function onClose(this: OwnedSocket): void {
  try {
    this[OWNER].onClose(this[LAST_ERROR]);
  } catch (error) {
    fault(this, error);
  }
}

function onConnect(this: OwnedSocket): void {
  try {
    (this[OWNER] as UpstreamSocketOwner).onConnect();
  } catch (error) {
    fault(this, error);
  }
}

/** What was received ends. If sending has failed before, that was all of the connection. */
function onUpstreamEnd(this: OwnedUpstream): void {
  const { sendError } = this;
  if (this.isEndUntrue) {
    this.destroy(sendError!);
    return;
  }
  onEnd.call(this);
  if (sendError !== null) this.destroy();
}

function onSendFailed(socket: OwnedUpstream, error: NodeJS.ErrnoException): void {
  if (socket.readableEnded) {
    socket.destroy();
    return;
  }
  try {
    (socket[OWNER] as UpstreamSocketOwner).onSendFailed(error);
  } catch (bug) {
    fault(socket, bug);
  }
}

function own<S extends Socket>(socket: S, owner: SocketOwner): S & OwnedSocket {
  const owned = socket as S & OwnedSocket;
  owned[OWNER] = owner;
  owned[LAST_ERROR] = null;
  owned.on('drain', onDrain);
  owned.on('error', onError);
  owned.on('close', onClose);
  return owned;
}

/**
 * Starts to deliver the events of a freshly accepted socket; call it inside the `connection` event. A socket that has
 * an owner changes hands: what comes from now on is the new owner's.
 * @param borrowed for an owner that can do with borrowed bytes: what they may be read into. Null for one that keeps them.
 * @returns whether the owner borrows them.
 */
export function attachAccepted(
  socket: Socket,
  owner: SocketOwner,
  mode: ReadMode,
  borrowed: Buffer | null = null,
): boolean {
  if (isOwned(socket)) {
    const step = socket[OWNER] as SocketOwner & Partial<SocketStep>;
    if (step.isLasting === true) step.next = owner;
    else socket[OWNER] = owner;
  } else {
    const owned = own(socket, owner);
    owned.on('end', onEndInOrder);
    if (isLean(socket, mode)) owned.push = leanPush;
    else if (mode !== 'lean' || !readSecured(socket, borrowed)) owned.on('data', onData);
  }
  const reads = securedReadsOf(socket);
  if (reads !== null) {
    reads.isBorrowed = borrowed !== null;
    return reads.isBorrowed;
  }
  if (!isLean(socket, mode)) return false;
  if (borrowed !== null) return readInto(socket, borrowed, leanRead);
  redirectReads(socket, pushCopy);
  return false;
}

const SECURED_DELIVERY: SecuredDelivery = {
  bytes: (socket, chunk, length) => deliver(socket as OwnedSocket, chunk, length),
  end: (socket) => onEnd.call(socket as OwnedSocket),
};

/** @returns whether the bytes of a TLS socket come past its Readable from now on. */
function readSecured(socket: Socket, borrowed: Buffer | null): boolean {
  return socket instanceof TLSSocket && SecuredReads.begin(socket, borrowed, SECURED_DELIVERY);
}

/** As sockets without TLS are read. */
function isLean(socket: Socket, mode: ReadMode): boolean {
  return mode === 'lean' && !(socket instanceof TLSSocket);
}

/**
 * An accepted socket goes under another one, which reads and writes it from now on. What its owner has read and passes on
 * (`passOn`) waits in it for that one, which takes it in a later turn.
 */
export function releaseAccepted(socket: Socket): void {
  if (!isOwned(socket)) return;
  redirectReads(socket, pushCopy);
  // Not deleted: V8 would keep a dictionary of all the socket's properties from then on, 1.3 KiB more for as long as it lives.
  if (socket.push !== originalPush) socket.push = originalPush;
  socket.removeListener('data', onData);
  socket.pause();
  socket.removeListener('end', onEndInOrder);
  socket.removeListener('drain', onDrain);
  socket.removeListener('close', onClose);
  socket[OWNER] = new ReleasedSocket(socket);
}

/** Keeps what comes before the socket above reads. */
class ReleasedSocket implements SocketOwner {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  onBytes(chunk: Buffer, length: number): boolean {
    this.#socket.unshift(Buffer.from(chunk.subarray(0, length)));
    return true;
  }

  onEnd(): void {}

  onDrain(): void {}

  onClose(): void {}

  onFault(): void {}
}

function isOwned(socket: Socket): socket is OwnedSocket {
  return OWNER in socket;
}

/** Passes bytes that an earlier owner has read to the present one, within a read. @returns what `onBytes` returns. */
export function passOn(socket: Socket, bytes: Buffer): boolean {
  return !isOwned(socket) || bytes.length === 0 || deliver(socket, bytes, bytes.length);
}

/**
 * The same outside of a read, where the lean way cannot be stopped: a stop that the owner asks for takes effect with
 * the next read, which it may still get.
 */
export function passOnLater(socket: Socket, bytes: Buffer, mode: ReadMode): void {
  if (!passOn(socket, bytes) && !isLean(socket, mode)) socket.pause();
}

/** Tells the present owner of an end that an earlier one has been told of. */
export function passEndOn(socket: Socket): void {
  if (isOwned(socket)) onEnd.call(socket);
}

/** Reads on after `onBytes` of an accepted socket has returned false. Bytes come in a later turn. */
export function resumeAccepted(socket: Socket, mode: ReadMode): void {
  const reads = securedReadsOf(socket);
  if (reads !== null) reads.resume(socket);
  else if (isLean(socket, mode)) originalPush.call(socket, EMPTY);
  else socket.resume();
}

/**
 * Breaks a connection off: the peer sees a reset, and what has not left yet is thrown away. Where there is no reset, that
 * is on a pipe, and while the end of this side is just being sent, the connection is closed.
 */
export function resetSocket(socket: Socket): void {
  // Node would neither reset nor close the latter.
  const isSendingEnd = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (socket.connecting || isSendingEnd || isPipe(socket)) socket.destroy();
  else (underlyingOf(socket) ?? socket).resetAndDestroy();
}

/** Resetting is up to the socket that the kernel knows; what lies over it closes with it. */
function underlyingOf(socket: Socket): Socket | undefined {
  return (socket as { [UNDERLYING]?: Socket })[UNDERLYING];
}

/** `socket` carries its bytes over `underlying`. */
export function layOver(socket: Socket, underlying: Socket): void {
  (socket as { [UNDERLYING]?: Socket })[UNDERLYING] = underlying;
}

function isPipe(socket: Socket): boolean {
  return socket.remoteFamily === undefined;
}

/** How the sockets to a cluster's hosts differ from plain ones; undefined parts do not. */
export interface UpstreamSocketOptions extends ConnectionOrigin {
  readonly tcpKeepalive: KeepaliveSettings | undefined;
}

/** Node's option for streams holds for sockets, too; its types leave it out. */
type ConnectOptions = NetConnectOpts & SocketConstructorOpts & OriginOptions & { readonly highWaterMark: number };

export interface UpstreamSocketContext {
  readonly readMode: ReadMode;
  readonly descriptorBudget: DescriptorBudget;
  /** For sockets with options of their own. */
  readonly systemCalls?: SystemCalls | undefined;
}

/**
 * Opens a connection whose events go to `owner`; a failure to connect arrives as `onClose`.
 * @param preamble is sent before anything of the owner; nobody changes it. Null for nothing.
 */
export function connectUpstream(
  address: Address,
  owner: UpstreamSocketOwner,
  context: UpstreamSocketContext,
  socketOptions: UpstreamSocketOptions,
  preamble: Buffer | null = null,
): Socket {
  const { readMode: mode } = context;
  const { options, failure } = connectOptions(address, context, socketOptions);
  if (mode === 'lean') {
    options.onread = {
      buffer: () => owner.readBuffer(),
      callback: (length, buffer) => deliver(owned, buffer as Buffer, length),
    };
  }
  const owned: OwnedUpstream = own(new UpstreamSocket(options, (error) => onSendFailed(owned, error)), owner);
  owned.on('end', onUpstreamEnd);
  if (failure !== null) return owned.destroy(failure);
  // Before the owner's listener, which may write at once.
  begin(owned, address, options, context, socketOptions, preamble);
  owned.on('connect', onConnect);
  if (mode === 'events') owned.on('data', onData);
  return owned;
}

/** The same for one that another socket will lie over: what becomes of it is for whoever lays that. */
export function connectUnderlying(
  address: Address,
  context: UpstreamSocketContext,
  socketOptions: UpstreamSocketOptions,
  preamble: Buffer | null,
): Socket {
  const { options, failure } = connectOptions(address, context, socketOptions);
  const socket = new Socket(options);
  if (failure === null) begin(socket, address, options, context, socketOptions, preamble);
  else socket.destroy(failure);
  return socket;
}

/**
 * Delivers the events of a TLS socket to an upstream. Call it inside the event that says that the handshake is done, before
 * anything is written; connecting is over.
 */
export function attachSecured(socket: TLSSocket, owner: UpstreamSocketOwner, mode: ReadMode): void {
  const owned = own(socket, owner);
  owned.on('end', onEndInOrder);
  const isLean = mode === 'lean' && SecuredReads.beginInto(socket, () => owner.readBuffer(), SECURED_DELIVERY);
  if (!isLean) owned.on('data', onData);
}

function begin(
  socket: Socket,
  address: Address,
  options: ConnectOptions,
  { descriptorBudget: { connectBelow } }: UpstreamSocketContext,
  { tcpKeepalive }: UpstreamSocketOptions,
  preamble: Buffer | null,
): void {
  socket.connect(options);
  if (tcpKeepalive !== undefined && address.kind === 'ip') {
    socket.once('connect', () => keepAlive(socket, tcpKeepalive));
  }
  if (preamble !== null) socket.once('connect', () => socket.write(preamble));
  // Node opens the descriptor in a tick of its own, which comes before this one.
  process.nextTick(keepBudget, socket, connectBelow);
}

function connectOptions(
  address: Address,
  { systemCalls }: UpstreamSocketContext,
  socketOptions: UpstreamSocketOptions,
): { readonly options: ConnectOptions; readonly failure: Error | null } {
  const { sourceAddress, sourcesByFamily } = socketOptions;
  const target =
    address.kind === 'pipe' ? { path: systemPath(address.path) } : { host: address.ip, port: address.port };
  const options: ConnectOptions = {
    ...target,
    highWaterMark: 1,
    noDelay: true,
    allowHalfOpen: true,
  };
  let failure: Error | null = null;
  // A pipe has no use for it.
  if (address.kind === 'ip' && (sourceAddress !== undefined || sourcesByFamily !== undefined)) {
    try {
      Object.assign(options, beginConnection(address.ip, socketOptions, systemCalls));
    } catch (error) {
      failure = error as Error;
    }
  }
  return { options, failure };
}

function keepBudget(socket: Socket, connectBelow: number): void {
  if (descriptorOf(socket) < connectBelow) return;
  const error = new Error('no descriptor is left for connections to upstreams');
  socket.destroy(Object.assign(error, { code: 'EMFILE' }));
}

function keepAlive(socket: Socket, { probes, timeSeconds, intervalSeconds }: KeepaliveSettings): void {
  socket.setKeepAlive(true, timeSeconds * 1000, intervalSeconds * 1000, probes);
}

/** Reads on after `onBytes` of an upstream socket has returned false. */
export function resumeUpstream(socket: Socket): void {
  const reads = securedReadsOf(socket);
  if (reads === null) socket.resume();
  else reads.resume(socket);
}
