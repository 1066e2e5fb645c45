// Frames that cost the proxy more than their sender, by kind, and how each ends. `/empty` and `/large` are answered by the proxy.

import { ErrorCode, FrameFlag, FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import type { Http2Stat } from '../../src/stats/index.ts';
import { data, frame, GET, headers, POST, SETTINGS, word } from './http2-session.ts';

const { CONTINUATION, HEADERS, PING, PRIORITY, RST_STREAM, WINDOW_UPDATE } = FrameType;

/** Beyond what kernels hold of a connection. */
export const UNREAD_LIMIT_BYTES = 2 ** 28;
/** Of a client that reads nothing. */
export const UNREAD_FLOODS: readonly {
  readonly name: string;
  readonly stat: Http2Stat;
  readonly piece: (streamId: number) => Buffer;
}[] = [
  { name: 'pings', stat: 'outbound_control_flood', piece: () => frame(PING, 0, 0, Buffer.alloc(8)) },
  { name: 'settings', stat: 'outbound_control_flood', piece: () => SETTINGS },
  {
    name: 'requests that are answered',
    stat: 'outbound_flood',
    piece: (streamId) => get(streamId, '/empty'),
  },
  {
    name: 'requests whose answers do not end',
    stat: 'outbound_control_flood',
    piece: (streamId) => get(streamId, '/large'),
  },
];

export interface Flood {
  readonly name: string;
  readonly stat: Http2Stat | null;
  readonly frames: readonly Buffer[];
}

export function many(count: number, make: (index: number) => Buffer): Buffer[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

const open = headers(1, POST, 0);
export const get = (streamId: number, path: string): Buffer => headers(streamId, [...GET.slice(0, 3), [':path', path]]);
const reset = (streamId: number): Buffer => frame(RST_STREAM, 0, streamId, word(ErrorCode.CANCEL));

export const FLOODS: readonly Flood[] = [
  { name: 'pings', stat: 'outbound_control_flood', frames: many(20_000, () => frame(PING, 0, 0, Buffer.alloc(8))) },
  { name: 'settings', stat: 'outbound_control_flood', frames: many(20_000, () => SETTINGS) },
  { name: 'empty content', stat: 'inbound_empty_frames_flood', frames: [open, ...many(3, () => data(1, ''))] },
  {
    name: 'window updates',
    stat: 'inbound_window_update_frames_flood',
    frames: [open, ...many(50, () => frame(WINDOW_UPDATE, 0, 0, word(1)))],
  },
  {
    name: 'priorities',
    stat: 'inbound_priority_frames_flood',
    frames: [open, ...many(300, () => frame(PRIORITY, 0, 1, Buffer.alloc(5)))],
  },
  {
    name: 'header blocks without end',
    stat: 'header_overflow',
    frames: [
      frame(HEADERS, 0, 1, Buffer.from([0x82])),
      ...many(100, () => frame(CONTINUATION, 0, 1, Buffer.from([0x82]))),
    ],
  },
  {
    name: 'resets of what has just been asked',
    stat: null,
    frames: many(600, (index) => Buffer.concat([headers(1 + 2 * index, GET), reset(1 + 2 * index)])),
  },
  {
    name: 'faults that have their streams reset',
    stat: null,
    frames: many(600, (index) => {
      const streamId = 1 + 2 * index;
      return Buffer.concat([headers(streamId, POST, 0), frame(WINDOW_UPDATE, 0, streamId, word(0))]);
    }),
  },
];

/** Takes content without end, as far as HTTP/2 knows. */
export const ENDLESS_WINDOWS = [
  frame(FrameType.SETTINGS, 0, 0, [0, 4, 0x7f, 0xff, 0xff, 0xff]),
  frame(FrameType.SETTINGS, FrameFlag.ACK, 0),
  frame(WINDOW_UPDATE, 0, 0, word(2 ** 30)),
];
