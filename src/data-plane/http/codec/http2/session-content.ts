// Content that an HTTP/2 session receives: within both windows, of the length that was announced, and the credit that the
// peer gets back for it.

import { ErrorCode, FrameFlag } from './frames.ts';
import { Fault } from './options.ts';
import type { SessionState } from './session-state.ts';
import type { SessionStream } from './session-stream.ts';

/** What a client may send to a stream that has had its answer, before it is stopped. */
const DISCARD_LIMIT_BYTES = 65536;

/** Whether so much more content, perhaps the last, is what Content-Length said. */
function fitsAnnouncement(stream: SessionStream, length: number, isEnd: boolean): boolean {
  const { announcedBytes } = stream;
  if (announcedBytes < 0) return true;
  const received = stream.receivedBytes + length;
  return isEnd ? received === announcedBytes : received <= announcedBytes;
}

export class SessionContent {
  readonly #session: SessionState;
  #receiveWindow: number;
  #creditBytes = 0;
  /** Of the DATA frame at hand. */
  #dataStream: SessionStream | null = null;
  #isDataEnd = false;
  /** Its content so far, where padding hides how much there will be; -1 of a frame without padding. */
  #paddedBytes = -1;

  constructor(session: SessionState) {
    this.#session = session;
    this.#receiveWindow = session.options.connectionWindowBytes;
  }

  /** A DATA frame begins. @returns whether the session goes on. */
  begin(flags: number, streamId: number, length: number): boolean {
    const isEnd = (flags & FrameFlag.END_STREAM) !== 0;
    const padded = (flags & FrameFlag.PADDED) !== 0;
    this.#paddedBytes = padded ? 0 : -1;
    const flood = padded ? null : this.#session.guard.onContent(length, isEnd);
    if (flood !== null) return this.#session.fail(flood);
    // Counted for streams that are no more, too, or both sides' windows would part for ever.
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) return this.#session.fail(Fault.windowExceeded);
    this.#isDataEnd = isEnd;
    this.#dataStream = null;
    if (streamId === 0 || this.#session.streams.isIdle(streamId)) return this.#session.fail(Fault.streamId);
    const stream = this.#session.streams.get(streamId);
    if (stream === undefined)
      return this.#session.streams.hasEndedHere(streamId) ? true : this.#session.fail(Fault.streamClosed);
    if (stream.isRemoteEnded) {
      this.#session.streamFault(stream, ErrorCode.STREAM_CLOSED, Fault.streamClosed.reason);
      return true;
    }
    stream.receiveWindow -= length;
    if (stream.receiveWindow < 0) {
      this.#session.streamFault(stream, ErrorCode.FLOW_CONTROL_ERROR, Fault.windowExceeded.reason);
      return true;
    }
    if (!stream.hasRemoteHead) {
      this.#session.streamFault(stream, ErrorCode.PROTOCOL_ERROR, Fault.message.reason);
      return true;
    }
    // Judged before any of the frame is handed on, where its padding is known to be none.
    if (!padded && !fitsAnnouncement(stream, length, isEnd)) {
      this.#session.messageFault(stream, 'content_length_mismatch');
      return !this.#session.isEnded;
    }
    this.#dataStream = stream;
    stream.wire?.receivedFrame(length);
    return true;
  }

  /** A part of the frame that has begun, as FrameHandler.onData. */
  receive(bytes: Buffer, start: number, end: number, padding: number, isLast: boolean): boolean {
    const stream = this.#dataStream;
    const length = end - start;
    if (this.#paddedBytes >= 0 && !this.#notePadded(length, isLast)) return false;
    // A handler may have let go of the stream in between.
    if (stream === null || !this.#session.streams.has(stream)) {
      this.#creditConnection(length + padding);
      return !this.#session.isEnded;
    }
    if (padding > 0) this.consume(stream, padding);
    const isEnd = isLast && this.#isDataEnd;
    const fits = fitsAnnouncement(stream, length, isEnd);
    stream.receivedBytes += length;
    if (!fits) {
      this.#creditConnection(length);
      return this.#session.messageFault(stream, 'content_length_mismatch');
    }
    if (stream.isDiscarded) this.#throwAway(stream, length);
    if (isEnd) stream.isRemoteEnded = true;
    if (!stream.isDiscarded && (length > 0 || isEnd)) stream.handler?.onData(bytes, start, end, isEnd);
    if (stream.isClosed) this.#session.closeStream(stream);
    return !this.#session.isEnded;
  }

  /** Padding costs as much to read as content, and is of as much use as none. @returns whether the session goes on. */
  #notePadded(length: number, isLast: boolean): boolean {
    this.#paddedBytes += length;
    if (!isLast) return true;
    const flood = this.#session.guard.onContent(this.#paddedBytes, this.#isDataEnd);
    return flood === null || this.#session.fail(flood);
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

  #throwAway(stream: SessionStream, length: number): void {
    this.#creditConnection(length);
    stream.discardedBytes += length;
    if (stream.discardedBytes > DISCARD_LIMIT_BYTES && !stream.isRemoteEnded && stream.isLocalEnded) {
      this.#session.resetStream(stream, ErrorCode.NO_ERROR);
    }
  }

  #creditConnection(octets: number): void {
    if (this.#session.isEnded) return;
    this.#creditBytes += octets;
    if (this.#creditBytes * 2 < this.#session.options.connectionWindowBytes) return;
    this.#session.sender.windowUpdate(0, this.#creditBytes);
    this.#receiveWindow += this.#creditBytes;
    this.#creditBytes = 0;
    this.#session.dirty();
  }

  /** A stream that ends, or whose content is thrown away, needs no credit of its own. */
  #creditStream(octets: number, stream: SessionStream): void {
    if (this.#session.isEnded || stream.isRemoteEnded || stream.isDiscarded) return;
    stream.creditBytes += octets;
    if (stream.creditBytes * 2 < this.#session.options.streamWindowBytes || !this.#session.streams.has(stream)) return;
    this.#session.sender.windowUpdate(stream.id, stream.creditBytes);
    stream.receiveWindow += stream.creditBytes;
    stream.creditBytes = 0;
    this.#session.dirty();
  }
}
