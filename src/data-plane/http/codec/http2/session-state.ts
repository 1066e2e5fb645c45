// What the parts of an HTTP/2 session share: its streams, its output, how far either side has gone, and the ways in which
// streams and the session itself end.

import type { HeadLimits } from '../../../../wasm/http1.ts';
import { EncodeFlag } from '../../../../wasm/http2.ts';
import { FloodGuard } from './flood-guard.ts';
import type { FrameOutput } from './frame-output.ts';
import type { FrameReader } from './frame-reader.ts';
import { ErrorCode, FrameType, LARGEST_WINDOW } from './frames.ts';
import { Fault, type Http2Options, type SessionFault } from './options.ts';
import type { SessionOwner, SessionTools } from './session-owner.ts';
import { SessionSender } from './session-sender.ts';
import type { SessionStream } from './session-stream.ts';
import { StreamSet } from './stream-set.ts';

export class SessionState {
  readonly isServer: boolean;
  readonly tools: SessionTools;
  readonly owner: SessionOwner;
  readonly options: Http2Options;
  readonly limits: HeadLimits;
  readonly guard: FloodGuard;
  readonly sender: SessionSender;
  readonly streams: StreamSet;
  readonly #reader: FrameReader;
  /** The peer has said what it takes, and read what this side takes. */
  hasSettings = false;
  isAcknowledged = false;
  isEnded = false;
  /** Its end has been announced. */
  isDraining = false;
  /** Table of its decoder, 0 before the first block. */
  decoder = 0;
  /** No stream above this one is taken any more, by this side and by the peer. */
  lastTaken = LARGEST_WINDOW;
  peerLast = LARGEST_WINDOW;
  /** Frames of the read at hand have left room for content that waits: it goes out once, behind all of them. */
  isWidened = false;
  #wasDirty = false;

  constructor(
    tools: SessionTools,
    owner: SessionOwner,
    isServer: boolean,
    options: Http2Options,
    limits: HeadLimits,
    reader: FrameReader,
  ) {
    this.isServer = isServer;
    this.tools = tools;
    this.owner = owner;
    this.options = options;
    this.limits = limits;
    this.guard = new FloodGuard(options);
    const flags = options.encodesHuffman ? EncodeFlag.HUFFMAN : 0;
    this.sender = new SessionSender(tools.heads, tools.slabs, this.guard, flags, isServer);
    this.streams = new StreamSet(isServer);
    this.#reader = reader;
  }

  get output(): FrameOutput {
    return this.sender.output;
  }

  /** Its last streams run, or none. */
  get isDrained(): boolean {
    return this.lastTaken < LARGEST_WINDOW;
  }

  /** Whether there is a decoder, made with the first block; false when there is no memory for it. */
  hasDecoder(): boolean {
    if (this.decoder !== 0) return true;
    this.decoder = this.tools.heads.createDecoder(this.options.headerTableBytes);
    if (this.decoder === 0) return false;
    if (this.isAcknowledged) this.#limitDecoder();
    return true;
  }

  /** The peer has read what this side takes. */
  acknowledge(): void {
    this.isAcknowledged = true;
    if (this.decoder !== 0) this.#limitDecoder();
  }

  #limitDecoder(): void {
    this.tools.heads.enforceLimit(this.decoder, this.options.headerTableBytes);
  }

  // ---- output -----------------------------------------------------------------------------------------

  /** There is output: its owner hears of it once. */
  dirty(): void {
    if (this.#wasDirty || this.output.length === 0) return;
    this.#wasDirty = true;
    this.owner.onDirty();
  }

  /** Writes the output, unless the socket holds some. */
  flush(): void {
    if (this.sender.isBlocked) return;
    this.#wasDirty = false;
    this.sender.write(this.owner, true);
    if (!this.sender.isBlocked) this.#flushed();
  }

  /** The socket has taken all that was written: the rest follows. */
  drained(): void {
    this.sender.isBlocked = false;
    this.#flushed();
    this.flush();
  }

  flushWidened(): void {
    if (!this.isWidened) return;
    this.isWidened = false;
    if (!this.isEnded) this.#flushWaiting();
  }

  #flushWaiting(): void {
    for (const stream of this.sender.flushWaiting()) {
      this.dirty();
      if (stream.isResetPending) this.resetStream(stream, stream.pendingReset);
      else if (stream.isClosed) this.closeStream(stream);
      stream.handler?.onWritable();
    }
    if (this.output.length > 0) this.dirty();
  }

  /** Sends the head that was prepared last. @param isFinal no interim one. */
  sendHead(stream: SessionStream, length: number, isEnd: boolean, isFinal: boolean): void {
    this.sender.sendHead(stream, length, isEnd);
    if (isFinal) stream.hasLocalHead = true;
    if (isEnd) stream.isLocalEnded = true;
    this.dirty();
    if (stream.isClosed) this.closeStream(stream);
  }

  goaway(lastStreamId: number, code: number): void {
    this.output.control(FrameType.GOAWAY, 0, 0, 2, lastStreamId, code);
  }

  // ---- ends -------------------------------------------------------------------------------------------

  /** A message with a fault ends its stream, or by the options the session. */
  messageFault(stream: SessionStream, reason: string): boolean {
    this.owner.count('rx_messaging_error');
    if (!this.options.isStreamErrorOnInvalidMessage && this.isServer)
      return this.fail({ ...Fault.message, reason, stat: null });
    this.streamFault(stream, ErrorCode.PROTOCOL_ERROR, reason);
    return !this.isEnded;
  }

  /** The peer's fault ends a stream. Who makes this side do so again and again gets no further (made-you-reset). */
  streamFault(stream: SessionStream, code: number, reason: string): void {
    const { handler } = stream;
    const isPremature = this.isServer && !stream.hasLocalHead;
    this.resetStream(stream, code);
    handler?.onReset(code, true, reason);
    const flood = isPremature || !stream.isLocalEnded ? this.guard.onPrematureReset() : null;
    if (flood !== null) this.fail(flood);
  }

  resetStream(stream: SessionStream, code: number): void {
    this.remove(stream);
    this.sendReset(stream.id, code);
    this.idle();
  }

  sendReset(streamId: number, code: number): void {
    this.streams.endedHere(streamId);
    if (this.isEnded) return;
    this.owner.count('tx_reset');
    this.output.control(FrameType.RST_STREAM, 0, streamId, 1, code);
    this.dirty();
  }

  remove(stream: SessionStream): void {
    this.streams.delete(stream);
    this.sender.drop(stream);
  }

  /** Both sides have ended the stream. */
  closeStream(stream: SessionStream): void {
    if (!this.streams.has(stream)) return;
    this.remove(stream);
    this.idle();
  }

  idle(): void {
    if (this.streams.size === 0 && !this.isEnded) this.owner.onIdle();
  }

  /** Ends the session by a fault, which its streams and its owner are told. @returns false, for who reads. */
  fail(fault: SessionFault): false {
    if (this.isEnded) return false;
    if (fault.stat !== null) this.owner.count(fault.stat);
    this.goaway(this.streams.lastRemoteId, fault.code);
    this.dirty();
    this.close(fault.code, true, fault.reason);
    this.owner.onSessionFault(fault);
    return false;
  }

  /** The connection is gone: its streams are told, and its tables given back. */
  close(code: number, isLocal: boolean, reason: string): void {
    if (this.decoder !== 0) this.tools.heads.release(this.decoder);
    this.decoder = 0;
    this.sender.close();
    this.isEnded = true;
    this.#reader.stop();
    for (const stream of this.streams.all()) {
      this.streams.delete(stream);
      this.sender.drop(stream);
      stream.handler?.onReset(code, isLocal, reason);
    }
  }

  /** All output has left: what waited for that may go on. */
  #flushed(): void {
    this.output.forget();
    if (!this.isEnded) this.#flushWaiting();
  }
}
