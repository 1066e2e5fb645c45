// Frames of an HTTP/2 session that carry no message: settings, windows, pings, resets, priorities, and GOAWAY, which it
// sends in two steps (RFC 9113 section 6.8).

import { ErrorCode, FrameFlag, FrameType, LARGEST_WINDOW } from './frames.ts';
import { Fault } from './options.ts';
import type { SessionState } from './session-state.ts';
import { LEFT_BEHIND, LEFT_BEHIND_OTHERS } from './session-stream.ts';

const MARK_PING = 0x77656972;
const MARK_DRAIN = 0x647261;

export class SessionControl {
  readonly #session: SessionState;

  constructor(session: SessionState) {
    this.#session = session;
  }

  // ---- from the peer ----------------------------------------------------------------------------------

  onSettings(flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (streamId !== 0) return this.#session.fail(Fault.streamId);
    if ((flags & FrameFlag.ACK) !== 0) {
      if (end > start) return this.#session.fail(Fault.frameSize);
      this.#session.acknowledge();
      return true;
    }
    this.#session.hasSettings = true;
    const { peer } = this.#session.sender;
    const before = peer.windowBytes;
    const fault = peer.read(bytes, start, end);
    if (fault !== null) return this.#session.fail(fault);
    this.#session.sender.resizeTable();
    this.#session.output.control(FrameType.SETTINGS, FrameFlag.ACK, 0, 0);
    this.#session.dirty();
    if (peer.windowBytes > before) {
      if (!this.#session.sender.fits(this.#session.streams)) return this.#session.fail(Fault.window);
      this.#session.isWidened = true;
    }
    this.#session.owner.onSettings();
    return !this.#session.isEnded;
  }

  onWindowUpdate(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (end - start !== 4) return this.#session.fail(Fault.frameSize);
    const flood = this.#session.guard.onWindowUpdate();
    if (flood !== null) return this.#session.fail(flood);
    const increment = bytes.readUInt32BE(start) & LARGEST_WINDOW;
    if (streamId === 0) {
      if (increment === 0) return this.#session.fail(Fault.windowZero);
      if (!this.#session.sender.widen(increment)) return this.#session.fail(Fault.window);
      this.#session.isWidened = true;
      return true;
    }
    if (this.#session.streams.isIdle(streamId)) return this.#session.fail(Fault.streamId);
    const stream = this.#session.streams.get(streamId);
    if (stream === undefined) return true;
    if (increment === 0) {
      this.#session.streamFault(stream, ErrorCode.PROTOCOL_ERROR, Fault.windowZero.reason);
      return true;
    }
    if (!this.#session.sender.widenStream(stream, increment)) {
      this.#session.streamFault(stream, ErrorCode.FLOW_CONTROL_ERROR, Fault.window.reason);
    } else if (stream.isWaiting) {
      this.#session.isWidened = true;
    }
    return !this.#session.isEnded;
  }

  onPing(flags: number, streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (streamId !== 0) return this.#session.fail(Fault.streamId);
    if (end - start !== 8) return this.#session.fail(Fault.frameSize);
    if ((flags & FrameFlag.ACK) === 0) {
      this.#session.output.pong(bytes, start);
      this.#session.dirty();
      return true;
    }
    const mark = bytes.readUInt32BE(start);
    if (mark === MARK_DRAIN && this.#session.isDraining) this.#session.owner.onDrainRead();
    else if (mark === MARK_PING) this.#session.owner.onPong();
    return true;
  }

  onReset(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (streamId === 0 || this.#session.streams.isIdle(streamId)) return this.#session.fail(Fault.streamId);
    if (end - start !== 4) return this.#session.fail(Fault.frameSize);
    const stream = this.#session.streams.get(streamId);
    if (stream === undefined) return true;
    const code = bytes.readUInt32BE(start);
    this.#session.owner.count('rx_reset');
    if (code === ErrorCode.REFUSED_STREAM) this.#session.owner.count('stream_refused_errors');
    const isPremature = this.#session.isServer && !stream.hasLocalHead;
    this.#session.remove(stream);
    stream.handler?.onReset(code, false, 'remote_reset');
    this.#session.idle();
    const flood = isPremature ? this.#session.guard.onPrematureReset() : null;
    return flood === null ? !this.#session.isEnded : this.#session.fail(flood);
  }

  onPriority(streamId: number, length: number): boolean {
    if (streamId === 0) return this.#session.fail(Fault.streamId);
    const flood = this.#session.guard.onPriority();
    if (flood !== null) return this.#session.fail(flood);
    if (length === 5) return true;
    const stream = this.#session.streams.get(streamId);
    if (stream === undefined) return this.#session.fail(Fault.frameSize);
    this.#session.streamFault(stream, ErrorCode.FRAME_SIZE_ERROR, Fault.frameSize.reason);
    return !this.#session.isEnded;
  }

  onGoaway(streamId: number, bytes: Buffer, start: number, end: number): boolean {
    if (streamId !== 0) return this.#session.fail(Fault.streamId);
    if (end - start < 8) return this.#session.fail(Fault.frameSize);
    const last = bytes.readUInt32BE(start) & LARGEST_WINDOW;
    const leavesMore = last < this.#session.peerLast;
    this.#session.peerLast = Math.min(last, this.#session.peerLast, LARGEST_WINDOW - 1);
    const code = bytes.readUInt32BE(start + 4);
    this.#session.owner.onGoaway(last, code);
    if (this.#session.isServer || !leavesMore) return !this.#session.isEnded;
    const reason = last > 0 ? LEFT_BEHIND_OTHERS : LEFT_BEHIND;
    for (const stream of this.#session.streams.all()) {
      if (stream.id <= last) continue;
      this.#session.owner.count('stream_refused_errors');
      this.#session.remove(stream);
      stream.handler?.onReset(ErrorCode.REFUSED_STREAM, false, reason);
    }
    this.#session.idle();
    return !this.#session.isEnded;
  }

  // ---- to the peer ------------------------------------------------------------------------------------

  ping(): void {
    this.#session.output.control(FrameType.PING, 0, 0, 2, MARK_PING, MARK_PING);
    this.#session.dirty();
  }

  /**
   * Announces that streams will not be taken for long (RFC 9113 section 6.8). Its owner hears when the peer has read that, and
   * says when those above the last one seen are not taken any more.
   */
  drain(): void {
    if (this.#session.isEnded || this.#session.isDraining) return;
    this.#session.isDraining = true;
    this.#session.goaway(LARGEST_WINDOW, ErrorCode.NO_ERROR);
    this.#session.output.control(FrameType.PING, 0, 0, 2, MARK_DRAIN, MARK_DRAIN);
    this.#session.dirty();
  }

  /** The second step. */
  finishDrain(): void {
    if (this.#session.isEnded || this.#session.lastTaken < LARGEST_WINDOW) return;
    this.#session.lastTaken = this.#session.streams.lastRemoteId;
    this.#session.goaway(this.#session.lastTaken, ErrorCode.NO_ERROR);
    this.#session.dirty();
    if (this.#session.streams.size === 0) this.#session.owner.onIdle();
  }

  /** The connection is about to be cut: the peer may ask elsewhere for what comes behind the streams that were taken. */
  sayLast(): void {
    if (this.#session.isEnded || this.#session.isDrained) return;
    this.#session.lastTaken = this.#session.streams.lastRemoteId;
    this.#session.goaway(this.#session.lastTaken, ErrorCode.NO_ERROR);
  }
}
