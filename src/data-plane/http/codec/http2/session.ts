// An HTTP/2 session (RFC 9113), of either role: bytes in, frames out, events. It has no socket and no timers: its owner
// reads for it, writes `output` when it is dirty, and ends it. Streams belong to whoever hears their events.

import type { Http2Stat } from '../../../../stats/index.ts';
import type { HeadLimits } from '../../../../wasm/http1.ts';
import { Framing } from '../../../../wasm/http1.ts';
import { BlockFlag, blockFault, EncodeFlag, isCompressionError, isTooLarge } from '../../../../wasm/http2.ts';
import { BlockCollector } from './block-collector.ts';
import type { Http2Codec } from './codec.ts';
import { FloodGuard } from './flood-guard.ts';
import type { FrameOutput } from './frame-output.ts';
import { FrameReader } from './frame-reader.ts';
import {
  DEFAULT_FRAME_BYTES,
  DEFAULT_WINDOW,
  ErrorCode,
  FrameFlag,
  FrameType,
  LARGEST_WINDOW,
  PREFACE,
  Setting,
} from './frames.ts';
import { Fault, type Http2Options, type SessionFault } from './options.ts';
import { type OutputSink, SessionSender } from './session-sender.ts';
import { LEFT_BEHIND, SessionStream } from './session-stream.ts';
import { StreamSet } from './stream-set.ts';

/** What a session works with, of what all sessions of its worker share. */
export type SessionTools = Pick<Http2Codec, 'codec' | 'heads' | 'slabs'>;

/** Who owns a session. */
export interface SessionOwner extends OutputSink {
  /** A request has come on a new stream: give it a handler, or reset it. Its `onHead` follows. Servers only. */
  onStream(stream: SessionStream): void;
  /** A request goes beyond the bounds of heads. @returns lines of the answer, which has no content. Servers only. */
  onOversizedRequest(): string;
  /** There is output, which there was not before. */
  onDirty(): void;
  /** A head is about to be decoded: what the codec holds is lost. */
  onBlock(): void;
  /** The peer has said what it takes, for the first time or anew. */
  onSettings(): void;
  /** A name in `http2.*` counts one more. */
  count(stat: Http2Stat): void;
  /** The peer takes no streams above `lastStreamId`. */
  onGoaway(lastStreamId: number, code: number): void;
  /** The peer has answered the ping of `ping`. */
  onPong(): void;
  /** It has ended by a fault of the peer: its output, which says why, is the last there is. Its streams have been told. */
  onSessionFault(fault: SessionFault): void;
  /** Its last stream has ended. */
  onIdle(): void;
}

/** What a client may send to a stream that has had its answer, before it is stopped. */
const DISCARD_LIMIT_BYTES = 65536;
const MARK_PING = 0x77656972;
const MARK_DRAIN = 0x647261;
const NOTHING = Buffer.alloc(0);

/** Whether so much more content, perhaps the last, is what Content-Length said. */
function fitsAnnouncement(stream: SessionStream, length: number, isEnd: boolean): boolean {
  const { announcedBytes } = stream;
  if (announcedBytes < 0) return true;
  const received = stream.receivedBytes + length;
  return isEnd ? received === announcedBytes : received <= announcedBytes;
}

export class Http2Session {
  readonly isServer: boolean;
  readonly #shared: SessionTools;
  readonly #owner: SessionOwner;
  readonly #options: Http2Options;
  readonly #limits: HeadLimits;
  readonly #guard: FloodGuard;
  readonly #sender: SessionSender;
  readonly #reader: FrameReader;
  readonly #streams: StreamSet;
  /** Bytes of the client's preface that have come. */
  #prefaceBytes = 0;
  #hasSettings = false;
  #isAcknowledged = false;
  #isEnded = false;
  /** Table of its decoder, 0 before the first block. */
  #decoder = 0;
  #receiveWindow: number;
  #creditBytes = 0;
  /** No stream above this one is taken any more. */
  #lastTaken = LARGEST_WINDOW;
  #peerLast = LARGEST_WINDOW;
  #isDraining = false;
  readonly #block: BlockCollector;
  /** Of the DATA frame at hand. */
  #dataStream: SessionStream | null = null;
  #isDataEnd = false;
  #wasDirty = false;

  constructor(shared: SessionTools, owner: SessionOwner, isServer: boolean, options: Http2Options, limits: HeadLimits) {
    this.isServer = isServer;
    this.#shared = shared;
    this.#owner = owner;
    this.#options = options;
    this.#limits = limits;
    this.#guard = new FloodGuard(options);
    this.#sender = new SessionSender(
      shared.heads,
      shared.slabs,
      this.#guard,
      options.encodesHuffman ? EncodeFlag.HUFFMAN : 0,
    );
    this.#reader = new FrameReader(this);
    this.#block = new BlockCollector(this.#guard);
    this.#streams = new StreamSet(isServer);
    this.#receiveWindow = options.connectionWindowBytes;
    this.#prefaceBytes = isServer ? 0 : PREFACE.length;
  }

  get output(): FrameOutput {
    return this.#sender.output;
  }

  /** Streams that are open or half-closed. */
  get streamCount(): number {
    return this.#streams.size;
  }

  /** Its end has been announced. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** The peer has said what it takes, and read what this side takes. */
  get isSettled(): boolean {
    return this.#hasSettings && this.#isAcknowledged;
  }

  /** A header block has begun and not ended. */
  get hasOpenBlock(): boolean {
    return this.#block.isOpen;
  }

  /** Its last streams run, or none. */
  get isDrained(): boolean {
    return this.#lastTaken < LARGEST_WINDOW;
  }

  /** Bytes of content that wait for a window, or for the peer to read. */
  get pendingBytes(): number {
    return this.#sender.pendingBytes;
  }

  /** Streams that this side may open now. */
  get freeStreams(): number {
    if (this.#isEnded || this.#peerLast < LARGEST_WINDOW || this.#streams.nextId === 0) return 0;
    return Math.max(0, this.#sender.peer.maxStreams - this.#streams.size);
  }

  /** The peer has said what it takes. */
  get hasSettings(): boolean {
    return this.#hasSettings;
  }

  get takesConnectProtocol(): boolean {
    return this.#sender.peer.takesConnectProtocol;
  }

  /** Says what this side takes; first of all. */
  start(): void {
    const options = this.#options;
    if (!this.isServer) this.output.raw(PREFACE);
    const settings: number[] = [Setting.INITIAL_WINDOW_SIZE, options.streamWindowBytes];
    if (options.headerTableBytes !== 4096) settings.push(Setting.HEADER_TABLE_SIZE, options.headerTableBytes);
    if (this.isServer) {
      settings.push(Setting.MAX_CONCURRENT_STREAMS, options.maxConcurrentStreams);
      if (options.allowConnect) settings.push(Setting.ENABLE_CONNECT_PROTOCOL, 1);
    } else {
      settings.push(Setting.ENABLE_PUSH, 0);
    }
    settings.push(Setting.MAX_HEADER_LIST_SIZE, this.#limits.maxHeadBytes, ...options.customSettings);
    this.output.settings(settings);
    const more = options.connectionWindowBytes - DEFAULT_WINDOW;
    if (more > 0) this.#sender.windowUpdate(0, more);
    this.#dirty();
  }

  /** Reads bytes[start..end), which are borrowed. */
  receive(bytes: Buffer, start: number, end: number): void {
    let at = start;
    for (; this.#prefaceBytes < PREFACE.length; at += 1) {
      if (at === end || this.#isEnded) return;
      if (bytes[at] !== PREFACE[this.#prefaceBytes]) {
        this.#fail(Fault.preface);
        return;
      }
      this.#prefaceBytes += 1;
    }
    this.#reader.read(bytes, at, end);
    this.#checkOutput();
  }

  /** The socket holds what was written, and nothing more is until it `drained`. */
  get isBlocked(): boolean {
    return this.#sender.isBlocked;
  }

  /** Writes the output, unless the socket holds some. */
  flush(): void {
    if (this.isBlocked) return;
    this.#wasDirty = false;
    this.#sender.write(this.#owner, true);
    if (!this.isBlocked) this.#flushed();
  }

  /** The socket has taken all that was written: the rest follows. */
  drained(): void {
    this.#sender.isBlocked = false;
    this.#flushed();
    this.flush();
  }

  // ---- sending ----------------------------------------------------------------------------------------

  /** A new stream of this side, for the request that lies in the codec. Null when the peer takes no more. */
  request(flags: number, isEnd: boolean): SessionStream | null {
    if (this.freeStreams <= 0) return null;
    const { peer } = this.#sender;
    const stream = new SessionStream(this.#streams.nextId, peer.windowBytes, this.#options.streamWindowBytes);
    stream.requestMethod = this.#shared.codec.request.methodId;
    const length = this.#sender.prepareHead(true, flags);
    if (length < 0) return null;
    this.#sender.sendHead(stream, length, isEnd);
    this.#streams.add(stream);
    this.#guard.onStream();
    stream.hasLocalHead = true;
    stream.isLocalEnded = isEnd;
    this.#dirty();
    return stream;
  }

  /**
   * Writes down the answer's head that lies in the codec, to be sent before anything else of the session.
   * @returns its length, for `sendHead`, or a negative code when that cannot be sent.
   */
  prepareResponse(flags: number): number {
    return this.#sender.prepareHead(false, flags);
  }

  /** The same of whole lines. */
  prepareLines(status: number, lines: string): number {
    return this.#sender.prepareLines(lines, status);
  }

  /** Answers with the head that was prepared last. */
  sendHead(stream: SessionStream, length: number, isEnd: boolean, isFinal = true): void {
    this.#sender.sendHead(stream, length, isEnd);
    this.#afterHead(stream, isEnd, isFinal);
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
    if (stream.isLocalEnded || this.#isEnded) return true;
    if (trailers !== undefined && trailers !== '') stream.pendingTrailers = trailers;
    const isThrough = this.#sender.content(stream, bytes, start, end, isEnd);
    this.#sender.write(this.#owner, false);
    this.#dirty();
    if (stream.isClosed) this.#close(stream);
    return isThrough;
  }

  /** Says what made it impossible to go on, and ends: its streams are told. */
  end(fault: SessionFault): void {
    this.#fail(fault);
  }

  /** A stream that both sides have ended counts no more, also while its handler is still being told. */
  release(stream: SessionStream): void {
    if (stream.isClosed) this.#close(stream);
  }

  /** Breaks a stream off; its handler hears no more. */
  reset(stream: SessionStream, code: number): void {
    if (!this.#streams.has(stream)) return;
    stream.handler = null;
    this.#resetStream(stream, code);
  }

  /** The message of a stream is of no use any more: what comes of it is counted and thrown away. */
  discard(stream: SessionStream): void {
    stream.handler = null;
    stream.isDiscarded = true;
    this.#creditStream(0, stream);
  }

  /** The user is done with so many octets of content. */
  consume(stream: SessionStream, octets: number): void {
    this.#creditConnection(octets);
    this.#creditStream(octets, stream);
  }

  /** The user keeps so many octets of content: those of its stream have to wait, those of others need not. */
  keep(octets: number): void {
    this.#creditConnection(octets);
  }

  /** The user is done with what it has kept. */
  consumeKept(stream: SessionStream, octets: number): void {
    this.#creditStream(octets, stream);
  }

  ping(): void {
    this.output.control(FrameType.PING, 0, 0, 2, MARK_PING, MARK_PING);
    this.#dirty();
  }

  /**
   * Announces that streams will not be taken for long (RFC 9113 section 6.8): the peer has one round trip to stop by
   * itself, then those above the last one seen are not taken.
   */
  drain(): void {
    if (this.#isEnded || this.#isDraining) return;
    this.#isDraining = true;
    this.#goaway(LARGEST_WINDOW, ErrorCode.NO_ERROR);
    this.output.control(FrameType.PING, 0, 0, 2, MARK_DRAIN, MARK_DRAIN);
    this.#dirty();
  }

  /** The second step, which the answer to `drain` brings by itself. */
  finishDrain(): void {
    if (this.#isEnded || this.#lastTaken < LARGEST_WINDOW) return;
    this.#lastTaken = this.#streams.lastRemoteId;
    this.#goaway(this.#lastTaken, ErrorCode.NO_ERROR);
    this.#dirty();
    if (this.#streams.size === 0) this.#owner.onIdle();
  }

  /** The connection is about to be cut: the peer may ask elsewhere for what comes behind the streams that were taken. */
  sayLast(): void {
    if (this.#isEnded || this.isDrained) return;
    this.#lastTaken = this.#streams.lastRemoteId;
    this.#goaway(this.#lastTaken, ErrorCode.NO_ERROR);
  }

  /** The connection is gone: its streams are told, and its tables given back. */
  close(code: number, isLocal: boolean, reason: string): void {
    if (this.#decoder !== 0) this.#shared.heads.release(this.#decoder);
    this.#decoder = 0;
    this.#sender.close();
    this.#isEnded = true;
    this.#reader.stop();
    for (const stream of this.#streams.all()) {
      this.#streams.delete(stream);
      this.#sender.drop(stream);
      stream.handler?.onReset(code, isLocal, reason);
    }
  }

  // ---- frames -----------------------------------------------------------------------------------------

  onFrameStart(type: number, flags: number, streamId: number, length: number): boolean {
    if (length > DEFAULT_FRAME_BYTES) return this.#fail(Fault.frameSize);
    if (!this.#hasSettings && (type !== FrameType.SETTINGS || (flags & FrameFlag.ACK) !== 0)) {
      return this.#fail(Fault.firstFrame);
    }
    if (!this.#block.admits(type === FrameType.CONTINUATION, streamId)) return this.#fail(Fault.frameOrder);
    return type === FrameType.DATA ? this.#beginData(flags, streamId, length) : true;
  }

  onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    switch (type) {
      case FrameType.HEADERS:
        return this.#onHeaders(flags, streamId, bytes, start, end);
      case FrameType.CONTINUATION:
        return this.#onContinuation(flags, bytes, start, end);
      case FrameType.SETTINGS:
        return this.#onSettings(flags, streamId, bytes, start, end);
      case FrameType.WINDOW_UPDATE:
        return this.#onWindowUpdate(streamId, bytes, start, end);
      case FrameType.PING:
        return this.#onPing(flags, streamId, bytes, start, end);
      case FrameType.RST_STREAM:
        return this.#onReset(streamId, bytes, start, end);
      case FrameType.PRIORITY:
        return this.#onPriority(streamId, end - start);
      case FrameType.GOAWAY:
        return this.#onGoaway(streamId, bytes, start, end);
      case FrameType.PUSH_PROMISE:
        return this.#fail(Fault.push);
      default:
        return true;
    }
  }

  onBadPadding(): void {
    this.#fail(Fault.padding);
  }

  #beginData(flags: number, streamId: number, length: number): boolean {
    const isEnd = (flags & FrameFlag.END_STREAM) !== 0;
    const flood = this.#guard.onContent(length, isEnd);
    if (flood !== null) return this.#fail(flood);
    // Counted for streams that are no more, too, or both sides' windows would part for ever.
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) return this.#fail(Fault.windowExceeded);
    this.#isDataEnd = isEnd;
    this.#dataStream = null;
    if (streamId === 0 || this.#streams.isIdle(streamId)) return this.#fail(Fault.streamId);
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return this.#streams.hasEndedHere(streamId) ? true : this.#fail(Fault.streamClosed);
    if (stream.isRemoteEnded) {
      this.#streamFault(stream, ErrorCode.STREAM_CLOSED, Fault.streamClosed.reason);
      return true;
    }
    stream.receiveWindow -= length;
    if (stream.receiveWindow < 0) {
      this.#streamFault(stream, ErrorCode.FLOW_CONTROL_ERROR, Fault.windowExceeded.reason);
      return true;
    }
    if (!stream.hasRemoteHead) {
      this.#streamFault(stream, ErrorCode.PROTOCOL_ERROR, Fault.message.reason);
      return true;
    }
    // Judged before any of the frame is handed on, where its padding is known to be none.
    const padded = (flags & FrameFlag.PADDED) !== 0;
    if (!padded && !fitsAnnouncement(stream, length, isEnd)) {
      this.#messageFault(stream, 'content_length_mismatch');
      return !this.#isEnded;
    }
    this.#dataStream = stream;
    return true;
  }

  onData(bytes: Buffer, start: number, end: number, padding: number, isLast: boolean): boolean {
    const stream = this.#dataStream;
    const length = end - start;
    // A handler may have let go of the stream in between.
    if (stream === null || !this.#streams.has(stream)) {
      this.#creditConnection(length + padding);
      return !this.#isEnded;
    }
    if (padding > 0) this.consume(stream, padding);
    const isEnd = isLast && this.#isDataEnd;
    const fits = fitsAnnouncement(stream, length, isEnd);
    stream.receivedBytes += length;
    if (!fits) {
      this.#creditConnection(length);
      return this.#messageFault(stream, 'content_length_mismatch');
    }
    if (stream.isDiscarded) this.#throwAway(stream, length);
    if (isEnd) stream.isRemoteEnded = true;
    if (!stream.isDiscarded && (length > 0 || isEnd)) stream.handler?.onData(bytes, start, end, isEnd);
    if (stream.isClosed) this.#close(stream);
    return !this.#isEnded;
  }

  #throwAway(stream: SessionStream, length: number): void {
    this.#creditConnection(length);
    stream.discardedBytes += length;
    if (stream.discardedBytes > DISCARD_LIMIT_BYTES && !stream.isRemoteEnded && stream.isLocalEnded) {
      this.#resetStream(stream, ErrorCode.NO_ERROR);
    }
  }

  #onHeaders(flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (streamId === 0) return this.#fail(Fault.streamId);
    const fault = this.#block.begin(flags, streamId, bytes, start, end);
    if (fault !== null) return this.#fail(fault);
    return this.#block.isWhole ? this.#onBlock() : true;
  }

  #onContinuation(flags: number, bytes: Buffer, start: number, end: number): boolean {
    const fault = this.#block.continue(flags, bytes, start, end);
    if (fault !== null) return this.#fail(fault);
    return this.#block.isWhole ? this.#onBlock() : true;
  }

  /** A whole block: of a new stream, of one that has begun, or of one that is no more but still compresses. */
  #onBlock(): boolean {
    const { streamId, endsStream: isEnd, bytes, start, end } = this.#block;
    this.#block.clear();
    this.#owner.onBlock();
    if (this.#decoder === 0) {
      this.#decoder = this.#shared.heads.createDecoder(this.#options.headerTableBytes);
      if (this.#decoder === 0) return this.#fail(Fault.noMemory);
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return this.#onNewBlock(isEnd, streamId, bytes, start, end);
    if (stream.isRemoteEnded) {
      if (!this.#skipBlock(bytes, start, end)) return false;
      this.#streamFault(stream, ErrorCode.STREAM_CLOSED, Fault.streamClosed.reason);
      return true;
    }
    if (stream.hasRemoteHead) return this.#onTrailers(stream, isEnd, bytes, start, end);
    return this.#onResponse(stream, isEnd, bytes, start, end);
  }

  #onNewBlock(isEnd: boolean, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (!this.#streams.isIdle(streamId)) {
      if (!this.#streams.hasEndedHere(streamId)) return this.#fail(Fault.streamClosed);
      return this.#skipBlock(bytes, start, end);
    }
    if (!this.isServer || streamId % 2 === 0) return this.#fail(Fault.streamId);
    this.#streams.lastRemoteId = streamId;
    // One that is not taken was never processed, and the peer knows (RFC 9113 section 6.8).
    if (streamId > this.#lastTaken) {
      this.#streams.endedHere(streamId);
      return this.#skipBlock(bytes, start, end);
    }
    this.#guard.onStream();
    const options = this.#options;
    const flags = (isEnd ? BlockFlag.END_STREAM : 0) | (options.allowConnect ? BlockFlag.CONNECT_PROTOCOL : 0);
    const { heads, codec } = this.#shared;
    const result = heads.decodeRequest(this.#decoder, bytes, start, end, this.#limits, flags);
    if (isCompressionError(result)) return this.#fail(Fault.compression);
    if (this.#streams.size >= options.maxConcurrentStreams) {
      this.#owner.count('stream_refused_errors');
      this.#sendReset(streamId, ErrorCode.REFUSED_STREAM);
      return !this.#isEnded;
    }
    const stream = new SessionStream(streamId, this.#sender.peer.windowBytes, options.streamWindowBytes);
    this.#streams.add(stream);
    stream.hasRemoteHead = true;
    stream.isRemoteEnded = isEnd;
    if (isTooLarge(result)) return this.#refuseLargeHead(stream);
    if (result < 0) return this.#messageFault(stream, blockFault(result));
    stream.requestMethod = codec.request.methodId;
    if (codec.request.framing === Framing.LENGTH) stream.announcedBytes = codec.request.contentLength;
    this.#owner.onStream(stream);
    stream.handler?.onHead(isEnd);
    return !this.#isEnded;
  }

  #onResponse(stream: SessionStream, isEnd: boolean, bytes: Buffer, start: number, end: number): boolean {
    const { heads, codec } = this.#shared;
    const flags = isEnd ? BlockFlag.END_STREAM : 0;
    const { requestMethod } = stream;
    const result = heads.decodeResponse(this.#decoder, bytes, start, end, this.#limits, flags, requestMethod);
    if (isCompressionError(result)) return this.#fail(Fault.compression);
    if (result < 0) return this.#blockFault(stream, result);
    const { status, framing } = codec.response;
    if (status < 200) {
      stream.handler?.onInterimHead(status);
      return !this.#isEnded;
    }
    stream.hasRemoteHead = true;
    stream.isRemoteEnded = isEnd;
    if (framing === Framing.LENGTH) stream.announcedBytes = codec.response.contentLength;
    else if (framing === Framing.NONE) stream.announcedBytes = 0;
    stream.handler?.onHead(isEnd);
    if (stream.isClosed) this.#close(stream);
    return !this.#isEnded;
  }

  #onTrailers(stream: SessionStream, isEnd: boolean, bytes: Buffer, start: number, end: number): boolean {
    const { heads } = this.#shared;
    const length = heads.decodeTrailers(this.#decoder, bytes, start, end, this.#limits);
    if (isCompressionError(length)) return this.#fail(Fault.compression);
    if (length < 0) return this.#blockFault(stream, length);
    if (!isEnd) return this.#messageFault(stream, 'trailers_without_end');
    if (stream.announcedBytes >= 0 && stream.receivedBytes !== stream.announcedBytes) {
      return this.#messageFault(stream, 'content_length_mismatch');
    }
    this.#owner.count('trailers');
    stream.isRemoteEnded = true;
    if (length === 0) stream.handler?.onData(NOTHING, 0, 0, true);
    else stream.handler?.onTrailers(heads.linesText(length));
    if (stream.isClosed) this.#close(stream);
    return !this.#isEnded;
  }

  /** Decodes a block that nobody wants, since the table has to see it. */
  #skipBlock(bytes: Buffer, start: number, end: number): boolean {
    const result = this.#shared.heads.decodeTrailers(this.#decoder, bytes, start, end, this.#limits);
    return isCompressionError(result) ? this.#fail(Fault.compression) : true;
  }

  #onSettings(flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (streamId !== 0) return this.#fail(Fault.streamId);
    if ((flags & FrameFlag.ACK) !== 0) {
      if (end > start) return this.#fail(Fault.frameSize);
      this.#isAcknowledged = true;
      return true;
    }
    this.#hasSettings = true;
    const { peer } = this.#sender;
    const before = peer.windowBytes;
    const fault = peer.read(bytes, start, end);
    if (fault !== null) return this.#fail(fault);
    this.#sender.resizeTable();
    this.output.control(FrameType.SETTINGS, FrameFlag.ACK, 0, 0);
    this.#dirty();
    const change = peer.windowBytes - before;
    if (change !== 0) {
      for (const stream of this.#streams.all()) {
        stream.sendWindow += change;
        if (stream.sendWindow > LARGEST_WINDOW) return this.#fail(Fault.window);
      }
    }
    this.#owner.onSettings();
    if (change > 0) this.#flushWaiting();
    return !this.#isEnded;
  }

  #onWindowUpdate(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (end - start !== 4) return this.#fail(Fault.frameSize);
    const flood = this.#guard.onWindowUpdate();
    if (flood !== null) return this.#fail(flood);
    const increment = bytes.readUInt32BE(start) & LARGEST_WINDOW;
    if (streamId === 0) {
      if (increment === 0) return this.#fail(Fault.windowZero);
      if (!this.#sender.widen(increment)) return this.#fail(Fault.window);
      this.#flushWaiting();
      return true;
    }
    if (this.#streams.isIdle(streamId)) return this.#fail(Fault.streamId);
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return true;
    if (increment === 0) {
      this.#streamFault(stream, ErrorCode.PROTOCOL_ERROR, Fault.windowZero.reason);
      return true;
    }
    stream.sendWindow += increment;
    if (stream.sendWindow > LARGEST_WINDOW) {
      this.#streamFault(stream, ErrorCode.FLOW_CONTROL_ERROR, Fault.window.reason);
    } else if (stream.isWaiting) {
      this.#flushWaiting();
    }
    return !this.#isEnded;
  }

  #onPing(flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (streamId !== 0) return this.#fail(Fault.streamId);
    if (end - start !== 8) return this.#fail(Fault.frameSize);
    if ((flags & FrameFlag.ACK) === 0) {
      this.output.pong(bytes, start);
      this.#dirty();
      return true;
    }
    const mark = bytes.readUInt32BE(start);
    if (mark === MARK_DRAIN) this.finishDrain();
    else if (mark === MARK_PING) this.#owner.onPong();
    return true;
  }

  #onReset(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (streamId === 0 || this.#streams.isIdle(streamId)) return this.#fail(Fault.streamId);
    if (end - start !== 4) return this.#fail(Fault.frameSize);
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return true;
    this.#owner.count('rx_reset');
    const isPremature = this.isServer && !stream.hasLocalHead;
    this.#remove(stream);
    stream.handler?.onReset(bytes.readUInt32BE(start), false, 'remote_reset');
    this.#idle();
    const flood = isPremature ? this.#guard.onPrematureReset() : null;
    return flood === null ? !this.#isEnded : this.#fail(flood);
  }

  #onPriority(streamId: number, length: number): boolean {
    if (streamId === 0) return this.#fail(Fault.streamId);
    const flood = this.#guard.onPriority();
    if (flood !== null) return this.#fail(flood);
    if (length === 5) return true;
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return this.#fail(Fault.frameSize);
    this.#streamFault(stream, ErrorCode.FRAME_SIZE_ERROR, Fault.frameSize.reason);
    return !this.#isEnded;
  }

  #onGoaway(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (streamId !== 0) return this.#fail(Fault.streamId);
    if (end - start < 8) return this.#fail(Fault.frameSize);
    const last = bytes.readUInt32BE(start) & LARGEST_WINDOW;
    this.#peerLast = Math.min(last, LARGEST_WINDOW - 1);
    const code = bytes.readUInt32BE(start + 4);
    this.#owner.onGoaway(last, code);
    if (this.isServer) return !this.#isEnded;
    for (const stream of this.#streams.all()) {
      if (stream.id <= last) continue;
      this.#remove(stream);
      stream.handler?.onReset(ErrorCode.REFUSED_STREAM, false, LEFT_BEHIND);
    }
    this.#idle();
    return !this.#isEnded;
  }

  // ---- ends -------------------------------------------------------------------------------------------

  #afterHead(stream: SessionStream, isEnd: boolean, isFinal: boolean): void {
    if (isFinal) stream.hasLocalHead = true;
    if (isEnd) stream.isLocalEnded = true;
    this.#dirty();
    if (stream.isClosed) this.#close(stream);
  }

  #creditConnection(octets: number): void {
    if (this.#isEnded) return;
    this.#creditBytes += octets;
    if (this.#creditBytes * 2 < this.#options.connectionWindowBytes) return;
    this.#sender.windowUpdate(0, this.#creditBytes);
    this.#receiveWindow += this.#creditBytes;
    this.#creditBytes = 0;
    this.#dirty();
  }

  /** A stream that ends, or whose content is thrown away, needs no credit of its own. */
  #creditStream(octets: number, stream: SessionStream): void {
    if (this.#isEnded || stream.isRemoteEnded || stream.isDiscarded) return;
    stream.creditBytes += octets;
    if (stream.creditBytes * 2 < this.#options.streamWindowBytes || !this.#streams.has(stream)) return;
    this.#sender.windowUpdate(stream.id, stream.creditBytes);
    stream.receiveWindow += stream.creditBytes;
    stream.creditBytes = 0;
    this.#dirty();
  }

  /** All output has left: what waited for that may go on. */
  #flushed(): void {
    this.output.forget();
    if (!this.#isEnded) this.#flushWaiting();
  }

  #flushWaiting(): void {
    for (const stream of this.#sender.flushWaiting()) {
      this.#dirty();
      if (stream.isClosed) this.#close(stream);
      stream.handler?.onWritable();
    }
    if (this.output.length > 0) this.#dirty();
  }

  /** A request beyond the bounds gets its answer, and the connection goes on: its table is in step. */
  #refuseLargeHead(stream: SessionStream): boolean {
    this.#owner.count('header_overflow');
    if (!stream.isRemoteEnded) this.discard(stream);
    const lines = this.#owner.onOversizedRequest();
    if (this.respondLines(stream, 431, lines, true) !== 0) {
      this.#resetStream(stream, ErrorCode.ENHANCE_YOUR_CALM);
    }
    return !this.#isEnded;
  }

  /** Fields that are too many end their stream only; whatever else is wrong with them is the message's fault. */
  #blockFault(stream: SessionStream, code: number): boolean {
    if (!isTooLarge(code)) return this.#messageFault(stream, blockFault(code));
    this.#owner.count('header_overflow');
    this.#streamFault(stream, ErrorCode.ENHANCE_YOUR_CALM, blockFault(code));
    return !this.#isEnded;
  }

  /** A message with a fault ends its stream, or by the options the session. */
  #messageFault(stream: SessionStream, reason: string): boolean {
    this.#owner.count('rx_messaging_error');
    if (!this.#options.isStreamErrorOnInvalidMessage && this.isServer)
      return this.#fail({ ...Fault.message, reason, stat: null });
    this.#streamFault(stream, ErrorCode.PROTOCOL_ERROR, reason);
    return !this.#isEnded;
  }

  /** The peer's fault ends a stream. Who makes this side do so again and again gets no further (made-you-reset). */
  #streamFault(stream: SessionStream, code: number, reason: string): void {
    const { handler } = stream;
    const isPremature = this.isServer && !stream.hasLocalHead;
    this.#resetStream(stream, code);
    handler?.onReset(code, true, reason);
    const flood = isPremature || !stream.isLocalEnded ? this.#guard.onPrematureReset() : null;
    if (flood !== null) this.#fail(flood);
  }

  #resetStream(stream: SessionStream, code: number): void {
    this.#remove(stream);
    this.#sendReset(stream.id, code);
    this.#idle();
  }

  #sendReset(streamId: number, code: number): void {
    this.#streams.endedHere(streamId);
    if (this.#isEnded) return;
    this.#owner.count('tx_reset');
    this.output.control(FrameType.RST_STREAM, 0, streamId, 1, code);
    this.#dirty();
  }

  #remove(stream: SessionStream): void {
    this.#streams.delete(stream);
    this.#sender.drop(stream);
  }

  /** Both sides have ended the stream. */
  #close(stream: SessionStream): void {
    if (!this.#streams.has(stream)) return;
    this.#remove(stream);
    this.#idle();
  }

  #idle(): void {
    if (this.#streams.size === 0 && !this.#isEnded) this.#owner.onIdle();
  }

  #goaway(lastStreamId: number, code: number): void {
    this.output.control(FrameType.GOAWAY, 0, 0, 2, lastStreamId, code);
  }

  /** What answers frames of the peer waits only within bounds. */
  #checkOutput(): void {
    if (this.#isEnded) return;
    const { frames, controlFrames } = this.output;
    if (controlFrames > this.#options.maxOutboundControlFrames) this.#fail(Fault.outboundControl);
    else if (frames > this.#options.maxOutboundFrames) this.#fail(Fault.outboundFrames);
  }

  #fail(fault: SessionFault): false {
    if (this.#isEnded) return false;
    if (fault.stat !== null) this.#owner.count(fault.stat);
    this.#goaway(this.#streams.lastRemoteId, fault.code);
    this.#dirty();
    this.close(fault.code, true, fault.reason);
    this.#owner.onSessionFault(fault);
    return false;
  }

  #dirty(): void {
    if (this.#wasDirty || this.output.length === 0) return;
    this.#wasDirty = true;
    this.#owner.onDirty();
  }
}
