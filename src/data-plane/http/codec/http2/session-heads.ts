// Heads and trailers that an HTTP/2 session receives: blocks put together from their frames, decoded, and handed to the
// stream that they belong to, or to a new one.

import { Framing } from '../../../../wasm/http1.ts';
import { BLOCK_TOO_LARGE, BlockFlag, blockFault, isCompressionError, isTooLarge } from '../../../../wasm/http2.ts';
import { BlockCollector } from './block-collector.ts';
import { ErrorCode } from './frames.ts';
import { Fault, type SessionFault } from './options.ts';
import type { SessionState } from './session-state.ts';
import { SessionStream } from './session-stream.ts';

const NOTHING = Buffer.alloc(0);

export class SessionHeads {
  readonly #session: SessionState;
  readonly #block: BlockCollector;

  constructor(session: SessionState) {
    this.#session = session;
    this.#block = new BlockCollector(session);
  }

  /** A header block has begun and not ended. */
  get isOpen(): boolean {
    return this.#block.isOpen;
  }

  /** Whether a frame may come now: between those of a block there is no other. */
  admits(isContinuation: boolean, streamId: number): boolean {
    return this.#block.admits(isContinuation, streamId);
  }

  onHeaders(flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (streamId === 0) return this.#session.fail(Fault.streamId);
    const fault = this.#block.begin(flags, streamId, bytes, start, end);
    if (fault !== null) return this.#session.fail(fault);
    return this.#block.isWhole ? this.#onBlock() : true;
  }

  onContinuation(flags: number, bytes: Buffer, start: number, end: number): boolean {
    const fault = this.#block.continue(flags, bytes, start, end);
    if (fault !== null) return this.#session.fail(fault);
    return this.#block.isWhole ? this.#onBlock() : true;
  }

  /** A whole block: of a new stream, of one that has begun, or of one that is no more but still compresses. */
  #onBlock(): boolean {
    const { streamId, endsStream: isEnd, bytes, start, end, large } = this.#block;
    this.#block.clear();
    this.#session.owner.onBlock();
    if (!this.#session.hasDecoder()) return this.#session.fail(Fault.noMemory);
    const stream = this.#session.streams.get(streamId);
    if (large !== null) return this.#onLargeBlock(stream, isEnd, streamId, large.method);
    stream?.wire?.receivedBlock(end - start);
    if (stream === undefined) return this.#onNewBlock(isEnd, streamId, bytes, start, end);
    if (stream.isRemoteEnded) {
      if (!this.#skipBlock(bytes, start, end)) return false;
      this.#session.streamFault(stream, ErrorCode.STREAM_CLOSED, Fault.streamClosed.reason);
      return true;
    }
    if (stream.hasRemoteHead) return this.#onTrailers(stream, isEnd, bytes, start, end);
    return this.#onResponse(stream, isEnd, bytes, start, end);
  }

  #onNewBlock(isEnd: boolean, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    const fault = this.#enter(streamId);
    if (fault !== null) return this.#session.fail(fault);
    if (this.#session.streams.hasEndedHere(streamId)) return this.#skipBlock(bytes, start, end);
    const options = this.#session.options;
    const flags = (isEnd ? BlockFlag.END_STREAM : 0) | (options.allowConnect ? BlockFlag.CONNECT_PROTOCOL : 0);
    const { heads, codec } = this.#session.tools;
    const result = heads.decodeRequest(this.#session.decoder, bytes, start, end, this.#session.limits, flags);
    if (isCompressionError(result)) return this.#session.fail(Fault.compression);
    const stream = this.#open(streamId, isEnd);
    if (stream === null) return !this.#session.isEnded;
    if (isTooLarge(result)) return this.#refuseLargeHead(stream, codec.request.methodId, blockFault(result));
    if (result < 0) return this.#session.messageFault(stream, blockFault(result));
    stream.requestMethod = codec.request.methodId;
    stream.blockBytes = end - start;
    if (codec.request.framing === Framing.LENGTH) stream.announcedBytes = codec.request.contentLength;
    this.#session.owner.onStream(stream);
    stream.handler?.onHead(isEnd);
    return !this.#session.isEnded;
  }

  /** What a block means that is larger than any that is read. It has been decoded. @param method of a request. */
  #onLargeBlock(stream: SessionStream | undefined, isEnd: boolean, streamId: number, method: number): boolean {
    if (stream === undefined) {
      const fault = this.#enter(streamId);
      if (fault !== null) return this.#session.fail(fault);
      if (this.#session.streams.hasEndedHere(streamId)) return true;
      const opened = this.#open(streamId, isEnd);
      if (opened === null) return !this.#session.isEnded;
      return this.#refuseLargeHead(opened, method, blockFault(BLOCK_TOO_LARGE));
    }
    if (!stream.isRemoteEnded) return this.#blockFault(stream, BLOCK_TOO_LARGE);
    this.#session.streamFault(stream, ErrorCode.STREAM_CLOSED, Fault.streamClosed.reason);
    return !this.#session.isEnded;
  }

  /** A block of a stream that is not open. @returns a fault, if there may be none; it `hasEndedHere` if nobody wants it. */
  #enter(streamId: number): SessionFault | null {
    const { streams } = this.#session;
    if (!streams.isIdle(streamId)) return streams.hasEndedHere(streamId) ? null : Fault.streamClosed;
    if (!this.#session.isServer || streamId % 2 === 0) return Fault.streamId;
    streams.lastRemoteId = streamId;
    // One that is not taken was never processed, and the peer knows (RFC 9113 section 6.8).
    if (streamId > this.#session.lastTaken) streams.endedHere(streamId);
    else this.#session.guard.onStream();
    return null;
  }

  /** The stream of a request whose block has been decoded; null when it is refused for the others that run. */
  #open(streamId: number, isEnd: boolean): SessionStream | null {
    const { options, streams } = this.#session;
    if (streams.size >= options.maxConcurrentStreams) {
      this.#session.owner.count('stream_refused_errors');
      this.#session.sendReset(streamId, ErrorCode.REFUSED_STREAM);
      return null;
    }
    const stream = new SessionStream(streamId, options.streamWindowBytes);
    streams.add(stream);
    stream.hasRemoteHead = true;
    stream.isRemoteEnded = isEnd;
    return stream;
  }

  #onResponse(stream: SessionStream, isEnd: boolean, bytes: Buffer, start: number, end: number): boolean {
    const { heads, codec } = this.#session.tools;
    const flags = isEnd ? BlockFlag.END_STREAM : 0;
    const { requestMethod } = stream;
    const result = heads.decodeResponse(
      this.#session.decoder,
      bytes,
      start,
      end,
      this.#session.limits,
      flags,
      requestMethod,
    );
    if (isCompressionError(result)) return this.#session.fail(Fault.compression);
    if (result < 0) return this.#blockFault(stream, result);
    const { status, framing } = codec.response;
    if (status < 200) {
      stream.handler?.onInterimHead(status);
      return !this.#session.isEnded;
    }
    stream.hasRemoteHead = true;
    stream.isRemoteEnded = isEnd;
    stream.isTunnel = framing === Framing.TUNNEL;
    if (framing === Framing.LENGTH) stream.announcedBytes = codec.response.contentLength;
    else if (framing === Framing.NONE) stream.announcedBytes = 0;
    stream.handler?.onHead(isEnd);
    if (stream.isClosed) this.#session.closeStream(stream);
    return !this.#session.isEnded;
  }

  #onTrailers(stream: SessionStream, isEnd: boolean, bytes: Buffer, start: number, end: number): boolean {
    const { heads } = this.#session.tools;
    const length = heads.decodeTrailers(this.#session.decoder, bytes, start, end, this.#session.limits);
    if (isCompressionError(length)) return this.#session.fail(Fault.compression);
    if (stream.isTunnel) {
      this.#session.owner.count('rx_messaging_error');
      this.#session.streamFault(stream, ErrorCode.PROTOCOL_ERROR, 'headers_in_tunnel');
      return !this.#session.isEnded;
    }
    if (length < 0) return this.#blockFault(stream, length);
    if (!isEnd) return this.#session.messageFault(stream, 'trailers_without_end');
    if (stream.announcedBytes >= 0 && stream.receivedBytes !== stream.announcedBytes) {
      return this.#session.messageFault(stream, 'content_length_mismatch');
    }
    this.#session.owner.count('trailers');
    stream.isRemoteEnded = true;
    if (length === 0) stream.handler?.onData(NOTHING, 0, 0, true);
    else stream.handler?.onTrailers(heads.linesText(length));
    if (stream.isClosed) this.#session.closeStream(stream);
    return !this.#session.isEnded;
  }

  /** Decodes a block that nobody wants, since the table has to see it. */
  #skipBlock(bytes: Buffer, start: number, end: number): boolean {
    const result = this.#session.tools.heads.decodeTrailers(
      this.#session.decoder,
      bytes,
      start,
      end,
      this.#session.limits,
    );
    return isCompressionError(result) ? this.#session.fail(Fault.compression) : true;
  }

  /** A request beyond the bounds gets its answer, and the connection goes on: its table is in step. */
  #refuseLargeHead(stream: SessionStream, method: number, reason: string): boolean {
    this.#session.owner.count('header_overflow');
    stream.requestMethod = method;
    this.#session.owner.onOversizedRequest(stream, reason);
    return !this.#session.isEnded;
  }

  /** Fields that are too many end their stream only; whatever else is wrong with them is the message's fault. */
  #blockFault(stream: SessionStream, code: number): boolean {
    if (!isTooLarge(code)) return this.#session.messageFault(stream, blockFault(code));
    this.#session.owner.count('header_overflow');
    this.#session.streamFault(stream, ErrorCode.ENHANCE_YOUR_CALM, blockFault(code));
    return !this.#session.isEnded;
  }
}
