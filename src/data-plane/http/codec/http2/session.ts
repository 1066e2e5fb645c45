// An HTTP/2 session (RFC 9113), of either role: bytes in, frames out, events. It has no socket and no timers: its owner
// reads for it, writes `output` when it is dirty, and ends it. Streams belong to whoever hears their events.
//
//   frames ──► heads (session-heads.ts), content (session-content.ts), all others (session-control.ts)
//   what they share, and how streams and the session end: session-state.ts; sending: session-sender.ts

import type { HeadLimits } from '../../../../wasm/http1.ts';
import type { WireBytes } from '../../../format/wire-bytes.ts';
import type { FrameOutput } from './frame-output.ts';
import { FrameReader } from './frame-reader.ts';
import {
  DEFAULT_FRAME_BYTES,
  DEFAULT_WINDOW,
  FrameFlag,
  FrameType,
  LARGEST_WINDOW,
  PREFACE,
  Setting,
} from './frames.ts';
import { Fault, type Http2Options, type SessionFault } from './options.ts';
import { SessionContent } from './session-content.ts';
import { SessionControl } from './session-control.ts';
import { SessionHeads } from './session-heads.ts';
import type { SessionOwner, SessionTools } from './session-owner.ts';
import { SessionState } from './session-state.ts';
import { SessionStream, type StreamHandler } from './session-stream.ts';

export class Http2Session {
  readonly isServer: boolean;
  readonly #state: SessionState;
  readonly #heads: SessionHeads;
  readonly #content: SessionContent;
  readonly #control: SessionControl;
  readonly #reader: FrameReader;
  /** Bytes of the client's preface that have come. */
  #prefaceBytes: number;

  constructor(tools: SessionTools, owner: SessionOwner, isServer: boolean, options: Http2Options, limits: HeadLimits) {
    this.isServer = isServer;
    this.#reader = new FrameReader(this);
    this.#state = new SessionState(tools, owner, isServer, options, limits, this.#reader);
    this.#heads = new SessionHeads(this.#state);
    this.#content = new SessionContent(this.#state);
    this.#control = new SessionControl(this.#state);
    this.#prefaceBytes = isServer ? 0 : PREFACE.length;
  }

  get output(): FrameOutput {
    return this.#state.output;
  }

  /** Streams that are open or half-closed. */
  get streamCount(): number {
    return this.#state.streams.size;
  }

  /** Its end has been announced. */
  get isDraining(): boolean {
    return this.#state.isDraining;
  }

  get isEnded(): boolean {
    return this.#state.isEnded;
  }

  /** The peer has said what it takes, and read what this side takes. */
  get isSettled(): boolean {
    return this.#state.hasSettings && this.#state.isAcknowledged;
  }

  /** A header block has begun and not ended. */
  get hasOpenBlock(): boolean {
    return this.#heads.isOpen;
  }

  /** Its last streams run, or none. */
  get isDrained(): boolean {
    return this.#state.isDrained;
  }

  /** Of the streams that somebody cares for; those that have been answered in full and wait to be taken are among them. */
  handlers(): StreamHandler[] {
    return this.#state.streams.all().flatMap(({ handler }) => handler ?? []);
  }

  /** Bytes of content that wait for a window, or for the peer to read. */
  get pendingBytes(): number {
    return this.#state.sender.pendingBytes;
  }

  /** Streams that this side may open now. */
  get freeStreams(): number {
    if (this.#state.isEnded || this.#state.peerLast < LARGEST_WINDOW || this.#state.streams.nextId === 0) return 0;
    return Math.max(0, this.#state.sender.peer.maxStreams - this.#state.streams.size);
  }

  /** Streams that the peer takes at a time; infinite when it has set no limit. */
  get peerStreams(): number {
    return this.#state.sender.peer.maxStreams;
  }

  /** The peer has said what it takes. */
  get hasSettings(): boolean {
    return this.#state.hasSettings;
  }

  get takesConnectProtocol(): boolean {
    return this.#state.sender.peer.takesConnectProtocol;
  }

  /** Says what this side takes; first of all. */
  start(): void {
    const options = this.#state.options;
    if (!this.isServer) this.output.raw(PREFACE);
    const settings: number[] = [Setting.INITIAL_WINDOW_SIZE, options.streamWindowBytes];
    if (options.headerTableBytes !== 4096) settings.push(Setting.HEADER_TABLE_SIZE, options.headerTableBytes);
    if (this.isServer) {
      settings.push(Setting.MAX_CONCURRENT_STREAMS, options.maxConcurrentStreams);
      if (options.allowConnect) settings.push(Setting.ENABLE_CONNECT_PROTOCOL, 1);
    } else {
      settings.push(Setting.ENABLE_PUSH, 0);
    }
    settings.push(Setting.MAX_HEADER_LIST_SIZE, this.#state.limits.maxHeadBytes, ...options.customSettings);
    this.output.settings(settings);
    const more = options.connectionWindowBytes - DEFAULT_WINDOW;
    if (more > 0) this.#state.sender.windowUpdate(0, more);
    this.#state.dirty();
  }

  /** Reads bytes[start..end), which are borrowed. */
  receive(bytes: Buffer, start: number, end: number): void {
    let at = start;
    for (; this.#prefaceBytes < PREFACE.length; at += 1) {
      if (at === end || this.#state.isEnded) return;
      if (bytes[at] !== PREFACE[this.#prefaceBytes]) {
        this.#state.fail(Fault.preface);
        return;
      }
      this.#prefaceBytes += 1;
    }
    this.#reader.read(bytes, at, end);
    this.#state.flushWidened();
    this.#checkOutput();
  }

  /** The socket holds what was written, and nothing more is until it `drained`. */
  get isBlocked(): boolean {
    return this.#state.sender.isBlocked;
  }

  /** Writes the output, unless the socket holds some. */
  flush(): void {
    this.#state.flush();
  }

  /** The socket has taken all that was written: the rest follows. */
  drained(): void {
    this.#state.drained();
  }

  // ---- sending ----------------------------------------------------------------------------------------

  /** A new stream of this side, for the request that lies in the codec. Null when the peer takes no more. */
  request(flags: number, isEnd: boolean, wire: WireBytes | null = null): SessionStream | null {
    if (this.freeStreams <= 0) return null;
    const stream = new SessionStream(this.#state.streams.nextId, this.#state.options.streamWindowBytes);
    stream.requestMethod = this.#state.tools.codec.request.methodId;
    stream.wire = wire;
    const length = this.#state.sender.prepareHead(true, flags);
    if (length < 0) return null;
    this.#state.sender.sendHead(stream, length, isEnd);
    this.#state.streams.add(stream);
    this.#state.guard.onStream();
    stream.hasLocalHead = true;
    stream.isLocalEnded = isEnd;
    this.#state.dirty();
    return stream;
  }

  /**
   * Writes down the answer's head that lies in the codec, to be sent before anything else of the session.
   * @returns its length, for `sendHead`, or a negative code when that cannot be sent.
   */
  prepareResponse(flags: number): number {
    return this.#state.sender.prepareHead(false, flags);
  }

  /** The same of whole lines. */
  prepareLines(status: number, lines: string): number {
    return this.#state.sender.prepareLines(lines, status);
  }

  /** Answers with the head that was prepared last. */
  sendHead(stream: SessionStream, length: number, isEnd: boolean, isFinal = true): void {
    this.#state.sendHead(stream, length, isEnd, isFinal);
  }

  /** Answers with the head that lies in the codec; 0, or a negative code when that cannot be sent. */
  respond(stream: SessionStream, flags: number, isEnd: boolean): number {
    const length = this.prepareResponse(flags);
    if (length < 0) return length;
    this.sendHead(stream, length, isEnd);
    return 0;
  }

  /** Answers with lines of its own; interim with a status of 1xx. */
  respondLines(stream: SessionStream, status: number, lines: string, isEnd: boolean): number {
    const length = this.prepareLines(status, lines);
    if (length < 0) return length;
    this.sendHead(stream, length, isEnd, status >= 200);
    return 0;
  }

  /**
   * Sends content, borrowed, and the end perhaps with trailers (lines).
   * @returns false when some of it waits: `onWritable` comes when it has gone.
   */
  send(stream: SessionStream, bytes: Buffer, start: number, end: number, isEnd: boolean, trailers?: string): boolean {
    if (stream.isLocalEnded || this.#state.isEnded) return true;
    if (trailers !== undefined && trailers !== '') stream.pendingTrailers = trailers;
    const isThrough = this.#state.sender.content(stream, bytes, start, end, isEnd);
    this.#state.sender.write(this.#state.owner, false);
    this.#state.dirty();
    if (stream.isClosed) this.#state.closeStream(stream);
    return isThrough;
  }

  /** Says what made it impossible to go on, and ends: its streams are told. */
  end(fault: SessionFault): void {
    this.#state.fail(fault);
  }

  /** A stream that both sides have ended counts no more, also while its handler is still being told. */
  release(stream: SessionStream): void {
    if (stream.isClosed) this.#state.closeStream(stream);
  }

  /** Breaks a stream off; its handler hears no more. */
  reset(stream: SessionStream, code: number): void {
    if (!this.#state.streams.has(stream)) return;
    stream.handler = null;
    this.#state.resetStream(stream, code);
  }

  /** Breaks a stream off behind what waits to be sent of it; its handler hears when that has gone, as `onWritable`. */
  resetWhenSent(stream: SessionStream, code: number): void {
    if (stream.isWaiting) stream.pendingReset = code;
    else this.reset(stream, code);
  }

  /** The message of a stream is of no use any more: what comes of it is counted and thrown away. */
  discard(stream: SessionStream): void {
    stream.discard();
  }

  /** The user is done with so many octets of content. */
  consume(stream: SessionStream, octets: number): void {
    this.#content.consume(stream, octets);
  }

  /** The user keeps so many octets of content: those of its stream have to wait, those of others need not. */
  keep(octets: number): void {
    this.#content.keep(octets);
  }

  /** The user is done with what it has kept. */
  consumeKept(stream: SessionStream, octets: number): void {
    this.#content.consumeKept(stream, octets);
  }

  ping(): void {
    this.#control.ping();
  }

  /**
   * Announces that streams will not be taken for long (RFC 9113 section 6.8). Its owner hears when the peer has read that, and
   * says when those above the last one seen are not taken any more.
   */
  drain(): void {
    this.#control.drain();
  }

  /** The second step. */
  finishDrain(): void {
    this.#control.finishDrain();
  }

  /** The connection is about to be cut: the peer may ask elsewhere for what comes behind the streams that were taken. */
  sayLast(): void {
    this.#control.sayLast();
  }

  /** The connection is gone: its streams are told, and its tables given back. */
  close(code: number, isLocal: boolean, reason: string): void {
    this.#state.close(code, isLocal, reason);
  }

  // ---- frames -----------------------------------------------------------------------------------------

  onFrameStart(type: number, flags: number, streamId: number, length: number): boolean {
    if (length > DEFAULT_FRAME_BYTES) return this.#state.fail(Fault.frameSize);
    if (!this.#state.hasSettings && (type !== FrameType.SETTINGS || (flags & FrameFlag.ACK) !== 0)) {
      return this.#state.fail(Fault.firstFrame);
    }
    if (!this.#heads.admits(type === FrameType.CONTINUATION, streamId)) return this.#state.fail(Fault.frameOrder);
    return type === FrameType.DATA ? this.#content.begin(flags, streamId, length) : true;
  }

  onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    switch (type) {
      case FrameType.HEADERS:
        return this.#heads.onHeaders(flags, streamId, bytes, start, end);
      case FrameType.CONTINUATION:
        return this.#heads.onContinuation(flags, bytes, start, end);
      case FrameType.SETTINGS:
        return this.#control.onSettings(flags, streamId, bytes, start, end);
      case FrameType.WINDOW_UPDATE:
        return this.#control.onWindowUpdate(streamId, bytes, start, end);
      case FrameType.PING:
        return this.#control.onPing(flags, streamId, bytes, start, end);
      case FrameType.RST_STREAM:
        return this.#control.onReset(streamId, bytes, start, end);
      case FrameType.PRIORITY:
        return this.#control.onPriority(streamId, end - start);
      case FrameType.GOAWAY:
        return this.#control.onGoaway(streamId, bytes, start, end);
      case FrameType.PUSH_PROMISE:
        return this.#state.fail(Fault.push);
      default:
        return true;
    }
  }

  onData(bytes: Buffer, start: number, end: number, padding: number, isLast: boolean): boolean {
    return this.#content.receive(bytes, start, end, padding, isLast);
  }

  onBadPadding(): void {
    this.#state.fail(Fault.padding);
  }

  /** What answers frames of the peer waits only within bounds. */
  #checkOutput(): void {
    if (this.#state.isEnded) return;
    const { frames, controlFrames } = this.output;
    if (controlFrames > this.#state.options.maxOutboundControlFrames) this.#state.fail(Fault.outboundControl);
    else if (frames > this.#state.options.maxOutboundFrames) this.#state.fail(Fault.outboundFrames);
  }
}
