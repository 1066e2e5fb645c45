// What the peer has announced (RFC 9113 section 6.5.2).

import { DEFAULT_FRAME_BYTES, DEFAULT_WINDOW, LARGEST_FRAME_BYTES, LARGEST_WINDOW, Setting } from './frames.ts';
import { Fault, type SessionFault } from './options.ts';

const SETTING_BYTES = 6;

export class PeerSettings {
  tableBytes = 4096;
  maxStreams = Number.POSITIVE_INFINITY;
  windowBytes = DEFAULT_WINDOW;
  takesConnectProtocol = false;
  /** Only clients can be pushed to: a server may say nothing but that it does not want it. */
  readonly #mostPush: number;

  /** @param isServer the peer is one. */
  constructor(isServer: boolean) {
    this.#mostPush = isServer ? 0 : 1;
  }

  /** Takes over the payload of a SETTINGS frame; what is wrong with it, or null. */
  read(bytes: Buffer, start: number, end: number): SessionFault | null {
    if ((end - start) % SETTING_BYTES !== 0) return Fault.frameSize;
    for (let at = start; at < end; at += SETTING_BYTES) {
      const fault = this.#set(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2));
      if (fault !== null) return fault;
    }
    return null;
  }

  #set(setting: number, value: number): SessionFault | null {
    switch (setting) {
      case Setting.HEADER_TABLE_SIZE:
        this.tableBytes = value;
        return null;
      case Setting.ENABLE_PUSH:
        return value > this.#mostPush ? Fault.settings : null;
      case Setting.MAX_CONCURRENT_STREAMS:
        this.maxStreams = value;
        return null;
      case Setting.INITIAL_WINDOW_SIZE:
        if (value > LARGEST_WINDOW) return Fault.window;
        this.windowBytes = value;
        return null;
      case Setting.MAX_FRAME_SIZE:
        // Nothing is gained by frames above the least size that every peer takes: no larger ones are sent.
        return value < DEFAULT_FRAME_BYTES || value > LARGEST_FRAME_BYTES ? Fault.settings : null;
      case Setting.ENABLE_CONNECT_PROTOCOL:
        // It may not be taken back (RFC 8441 section 3).
        if (value > 1 || (value === 0 && this.takesConnectProtocol)) return Fault.settings;
        this.takesConnectProtocol = value === 1;
        return null;
      case Setting.NO_RFC7540_PRIORITIES:
        return value > 1 ? Fault.settings : null;
      default:
        return null;
    }
  }
}
