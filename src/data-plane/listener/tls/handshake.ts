// A connection from its accept until it is secured, or is not.
//
//   accept ─► AWAITING ──first record──► SHAKING ──done, and the peer's certificate is right──► SECURED, the terminal filter goes on
//                │  └──many at once──► QUEUED ──its turn──▲ └──alert, wrong certificate──┐
//                │                       │                                               │
//                └──peer gone, time over, not TLS────────┴───────────────────────────────┴──► CLOSED, counted
//
// While the first record is awaited, OpenSSL knows nothing of the connection: clients that say nothing, half a word or something
// else than TLS cost no more than a socket. It also keeps connections small: Node reads ciphertext into a buffer of the size of the
// first bytes, 64 KiB where it reads them itself.
//
// What is held is bounded: until the first record, by its length and one read, after which one that is queued (handshake-pacing.ts)
// is not read; after that by OpenSSL's longest message, 100 KiB with certificates.

import type { Socket } from 'node:net';
import type { TLSSocket, TLSSocketOptions } from 'node:tls';
import { isOpensslError, NOT_READY_TEXT, tlsFailureText } from '../../../tls/failure.ts';
import { type Arrival, ArrivalTimer } from '../../network/arrival-timer.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import { HeldBytes } from '../../network/held-bytes.ts';
import { attachAccepted, layOver, releaseAccepted, type SocketOwner } from '../../network/socket-events.ts';
import type { ConnectionTls } from '../../network/tls/connection-tls.ts';
import type { PacedHandshake } from '../../network/tls/handshake-pacing.ts';
import { secureServerSocket } from '../../network/tls/tls-sockets.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { FIRST_RECORD_FAULTS, firstRecordOf } from './first-record.ts';

/** As loggers know this file. */
const FILE = 'src/data-plane/listener/tls/handshake.ts';

const PEER_LEFT = 'the client has left before the handshake was done';

export interface HandshakeOwner {
  readonly context: WorkerContext;
  /** 0 for no limit. */
  readonly timeoutMs: number;
  /** False while there is nothing to shake hands with. */
  readonly isReady: boolean;
  /** Of the TLS socket that is about to be made. @param bytes the client's first ones; borrowed. */
  optionsFor(bytes: Buffer): TLSSocketOptions;
  /** Before the first byte of the handshake. */
  watch(socket: TLSSocket, connection: DownstreamConnection): void;
  /** The handshake is done. @returns what the connection knows of it from now on, or why it is refused. */
  judge(socket: TLSSocket): ConnectionTls | string;
  /** Something has come, and it was no good handshake. */
  onFailed(error: NodeJS.ErrnoException): void;
  onHandshakeTimeout(): void;
  onSecured(connection: DownstreamConnection): void;
  /** It will never be, and is about to be told of as closed. */
  onUnsecured(connection: DownstreamConnection): void;
  /** Either has come to pass, or is about to. */
  onEnded(handshake: Handshake): void;
}

// The states of the drawing above.
const AWAITING = 0;
const QUEUED = 1;
const SHAKING = 2;
const SECURED = 3;
const CLOSED = 4;

export class Handshake implements SocketOwner, Arrival, PacedHandshake {
  readonly #owner: HandshakeOwner;
  readonly #connection: DownstreamConnection;
  readonly #raw: Socket;
  readonly #timer: ArrivalTimer;
  /** Null before the first record. */
  #socket: TLSSocket | null = null;
  /** A part of the first record; null before there is one. */
  #held: HeldBytes | null = null;
  /** The same, borrowed, while it is asked whether the handshake may begin. */
  #first: Buffer | null = null;
  #state: number = AWAITING;
  #error: Error | null = null;

  constructor(owner: HandshakeOwner, connection: DownstreamConnection) {
    const { context, timeoutMs } = owner;
    this.#owner = owner;
    this.#connection = connection;
    this.#raw = connection.socket;
    this.#timer = new ArrivalTimer(this, context.wheel, context.clock.monotonicMs(), timeoutMs);
    attachAccepted(this.#raw, this, context.readMode, context.codec.readBuffer);
    if (!owner.isReady) {
      connection.transportFailure = NOT_READY_TEXT;
      this.destroy();
    }
  }

  destroy(): void {
    (this.#socket ?? this.#raw).destroy();
  }

  endIfSilent(): void {
    this.#timer.endIfSilent(this.#connection.startMs);
  }

  get isSilent(): boolean {
    return this.#raw.bytesRead === 0;
  }

  onSilence(): void {
    this.destroy();
  }

  onTooLate(): void {
    this.#owner.onHandshakeTimeout();
    this.#connection.transportFailure = 'the handshake took too long';
    this.destroy();
  }

  // ---- Before the first record ----

  onBytes(chunk: Buffer, length: number): boolean {
    this.#held?.append(chunk, 0, length);
    // One read may have been under way when the others were stopped.
    if (this.#state === QUEUED) return false;
    const bytes = this.#held?.peek() ?? chunk.subarray(0, length);
    const record = firstRecordOf(bytes);
    if (record === 'whole') return this.#ask(bytes);
    if (record === 'incomplete') this.#hold(bytes);
    else {
      const reason = FIRST_RECORD_FAULTS[record];
      this.#fail(Object.assign(new Error(reason), { code: record, reason }));
    }
    return true;
  }

  onEnd(): void {
    this.#fail(new Error(PEER_LEFT));
  }

  /** Nothing has been written. */
  onDrain(): void {}

  onClose(error: NodeJS.ErrnoException | null): void {
    this.#error ??= error;
    this.#onClose();
  }

  onFault(error: unknown): void {
    this.#owner.context.logFault('a TLS handshake', error);
  }

  #hold(bytes: Buffer): void {
    if (this.#held !== null) return;
    this.#held = new HeldBytes();
    this.#held.append(bytes, 0, bytes.length);
  }

  #fail(error: Error): void {
    this.#error ??= error;
    this.destroy();
  }

  /** @param bytes what OpenSSL gets first; borrowed. @returns whether more may be read. */
  #ask(bytes: Buffer): boolean {
    this.#state = QUEUED;
    this.#first = bytes;
    const hasBegun = this.#owner.context.handshakes.ask(this);
    this.#first = null;
    if (!hasBegun) this.#hold(bytes);
    return hasBegun;
  }

  /** For the queue: its turn has come. */
  begin(): void {
    const raw = this.#raw;
    // Told of as closed in a moment.
    if (raw.destroyed || this.#state !== QUEUED) return;
    const bytes = this.#first ?? this.#held!.take();
    this.#state = SHAKING;
    releaseAccepted(raw);
    try {
      const options = this.#owner.optionsFor(bytes);
      // The TLS socket looks there first.
      raw.unshift(Buffer.from(bytes));
      this.#held = null;
      const socket = secureServerSocket(raw, options);
      this.#socket = socket;
      layOver(socket, raw);
      socket.once('secure', () => this.#onSecure(socket));
      socket.on('error', this.#onError);
      socket.once('end', this.#onEnd);
      socket.once('close', this.#onClose);
      this.#connection.secureWith(socket);
      this.#owner.watch(socket, this.#connection);
    } catch (error) {
      this.onFault(error);
      if (this.#socket === null) raw.once('close', this.#onClose);
      this.destroy();
    }
  }

  // ---- After that ----

  #onSecure(socket: TLSSocket): void {
    if (this.#state !== SHAKING) return;
    const { context } = this.#owner;
    try {
      const tls = this.#owner.judge(socket);
      if (typeof tls === 'string') {
        this.#refuse(tls);
        return;
      }
      this.#end(SECURED);
      socket.removeListener('error', this.#onError);
      socket.removeListener('end', this.#onEnd);
      socket.removeListener('close', this.#onClose);
      this.#connection.tls = tls;
      this.#connection.securedMs = context.clock.monotonicMs();
      this.#owner.onSecured(this.#connection);
    } catch (error) {
      context.logFault('a TLS handshake', error);
      socket.destroy();
    }
  }

  #refuse(reason: string): void {
    this.#connection.transportFailure = reason;
    this.#log(reason);
    this.destroy();
  }

  readonly #onError = (error: Error): void => {
    this.#error ??= error;
  };

  /** Half a handshake is none. */
  readonly #onEnd = (): void => {
    this.#socket?.destroy(new Error(PEER_LEFT));
  };

  readonly #onClose = (): void => {
    if (this.#state === SECURED || this.#state === CLOSED) return;
    this.#end(CLOSED);
    const error = this.#error as NodeJS.ErrnoException | null;
    if (error !== null) {
      // Whoever has sent nothing, such as a probe of a port, has not failed at TLS.
      if (isOpensslError(error) || this.#raw.bytesRead > 0) this.#owner.onFailed(error);
      this.#connection.transportFailure = tlsFailureText(error);
      this.#log(this.#connection.transportFailure);
    }
    this.#owner.onUnsecured(this.#connection);
    this.#connection.closed();
  };

  #end(state: number): void {
    if (this.#state === QUEUED) this.#owner.context.handshakes.leave(this);
    this.#state = state;
    this.#timer.remove();
    this.#owner.onEnded(this);
  }

  #log(reason: string): void {
    const log = this.#owner.context.logs.connection.ofFile(FILE);
    if (log.enabled('debug')) log.debug(`TLS of a connection from ${this.#connection.remoteAddress}: ${reason}`);
  }
}
