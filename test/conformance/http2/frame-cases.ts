// What RFC 9113 demands of frames and streams, as a table: what a client sends to a server, and the fault of the connection,
// the code of the stream's reset, or what the stream's user hears.

import { ErrorCode, FrameFlag, FrameType } from '../../../src/data-plane/http/codec/http2/frames.ts';
import type { Http2Options } from '../../../src/data-plane/http/codec/http2/options.ts';
import { plainBlock } from '../../support/http2-heads.ts';
import { data, frame, GET, headers, POST, SETTINGS, word } from '../../support/http2-session.ts';
import { integer } from '../../support/reference/hpack.ts';

const { END_STREAM, END_HEADERS, PADDED, PRIORITY, ACK } = FrameFlag;
const open = headers(1, POST, 0);
const done = headers(1);
const block = plainBlock(GET);
const setting = (id: number, value: number): Buffer =>
  frame(FrameType.SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, id]), word(value)]));
const windowUpdate = (streamId: number, increment: number): Buffer =>
  frame(FrameType.WINDOW_UPDATE, 0, streamId, word(increment));
const reset = (streamId: number, code = 8): Buffer => frame(FrameType.RST_STREAM, 0, streamId, word(code));
const repeat = (count: number, part: Buffer): Buffer => Buffer.concat(Array<Buffer>(count).fill(part));

const SMALL_TABLE: Partial<Http2Options> = { headerTableBytes: 1024 };
/** Of this side's settings. */
const ACKNOWLEDGED = frame(FrameType.SETTINGS, ACK, 0);
const sizeUpdate = (octets: number): number[] => integer(0x20, 5, octets);
const request = (streamId: number, updates: readonly number[] = [], flags: number = END_STREAM): Buffer =>
  frame(FrameType.HEADERS, END_HEADERS | flags, streamId, [...updates, ...block]);
/** More than can be decoded at once. */
const LARGE_REQUEST = Buffer.concat([
  frame(FrameType.HEADERS, END_STREAM, 1, block),
  ...Array.from({ length: 5 }, (_, index) =>
    frame(FrameType.CONTINUATION, index === 4 ? END_HEADERS : 0, 1, plainBlock([['x', 'y'.repeat(16_000)]])),
  ),
]);

/** More than the limit of a hundred. */
const MANY = [...GET, ...Array.from({ length: 101 }, (_, index) => [`x-${index}`, ''] as const)];

export interface Outcome {
  /** Reason of the connection's fault. */
  readonly fault?: string;
  readonly code?: number;
  /** Codes of RST_STREAM by stream. */
  readonly resets?: Readonly<Record<number, number>>;
  readonly events?: readonly string[];
  readonly stats?: readonly string[];
  /** Statuses of the session's own answers. */
  readonly answers?: Readonly<Record<number, string>>;
  /** Nobody gives credit back. */
  readonly keeps?: boolean;
}

export const STREAMWISE: Partial<Http2Options> = { isStreamErrorOnInvalidMessage: true };

/** [what, frames behind preface and SETTINGS, outcome, options] */
export const FRAME_CASES: readonly (readonly [string, readonly Buffer[], Outcome, Partial<Http2Options>?])[] = [
  // 4. Frames
  [
    'a frame larger than announced',
    [frame(FrameType.DATA, 0, 1, Buffer.alloc(16385))],
    { fault: 'http2_frame_size_invalid', code: 6 },
  ],
  ['a frame of a type that nobody knows', [frame(99, 255, 5, [1, 2, 3]), done], { events: ['1 head GET / end'] }],
  [
    'flags that mean nothing',
    [frame(FrameType.HEADERS, 0xd2 | END_HEADERS | END_STREAM, 1, block)],
    { events: ['1 head GET / end'] },
  ],
  [
    'the reserved bit of a stream',
    [frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 0x80000001, block)],
    { events: ['1 head GET / end'] },
  ],
  [
    'another frame within a block',
    [frame(FrameType.HEADERS, 0, 1, block), done],
    { fault: 'http2_frame_out_of_order', code: 1 },
  ],
  [
    'a frame of another stream within a block',
    [frame(FrameType.HEADERS, 0, 1, block), frame(FrameType.CONTINUATION, END_HEADERS, 3)],
    { fault: 'http2_frame_out_of_order' },
  ],
  [
    'an unknown frame within a block',
    [frame(FrameType.HEADERS, 0, 1, block), frame(99, 0, 1)],
    { fault: 'http2_frame_out_of_order' },
  ],
  [
    'CONTINUATION without a block',
    [frame(FrameType.CONTINUATION, END_HEADERS, 1)],
    { fault: 'http2_frame_out_of_order' },
  ],
  [
    'CONTINUATION behind the end of a block',
    [open, frame(FrameType.CONTINUATION, END_HEADERS, 1)],
    { fault: 'http2_frame_out_of_order', code: 1 },
  ],
  [
    'CONTINUATION on stream 0',
    [frame(FrameType.CONTINUATION, END_HEADERS, 0)],
    { fault: 'http2_frame_out_of_order', code: 1 },
  ],
  [
    'DATA within a block of trailers',
    [open, frame(FrameType.HEADERS, END_STREAM, 1, []), data(1, 'x')],
    { fault: 'http2_frame_out_of_order', code: 1 },
  ],
  [
    'a block in three frames',
    [
      frame(FrameType.HEADERS, END_STREAM, 1, block.subarray(0, 3)),
      frame(FrameType.CONTINUATION, 0, 1, block.subarray(3, 9)),
      frame(FrameType.CONTINUATION, END_HEADERS, 1, block.subarray(9)),
    ],
    { events: ['1 head GET / end'] },
  ],
  [
    'a block that goes on without end',
    [frame(FrameType.HEADERS, 0, 1, block), repeat(64, frame(FrameType.CONTINUATION, 0, 1, Buffer.alloc(16384)))],
    { fault: 'http2_header_block_too_large', code: 11, stats: ['header_overflow'] },
  ],
  [
    'a block in many small frames',
    [frame(FrameType.HEADERS, 0, 1, block), repeat(65, frame(FrameType.CONTINUATION, 0, 1, [0]))],
    { fault: 'http2_header_block_too_large', code: 11 },
  ],
  [
    'a block that cannot be decoded',
    [frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, [0x80])],
    { fault: 'http2_compression_invalid', code: 9 },
  ],
  // 4.3.1. Tables that are smaller than before
  [
    'a larger table before the limit is known to the peer',
    [request(1, sizeUpdate(4096))],
    { events: ['1 head GET / end'] },
    SMALL_TABLE,
  ],
  [
    'a table within the limit, said once',
    [ACKNOWLEDGED, request(1, sizeUpdate(1024)), request(3)],
    { events: ['1 head GET / end', '3 head GET / end'] },
    SMALL_TABLE,
  ],
  [
    'a table within the limit, said behind a smaller one',
    [request(1), ACKNOWLEDGED, request(3, [...sizeUpdate(0), ...sizeUpdate(7)])],
    { events: ['1 head GET / end', '3 head GET / end'] },
    SMALL_TABLE,
  ],
  [
    'a table beyond the acknowledged limit',
    [ACKNOWLEDGED, request(1, sizeUpdate(1025))],
    { fault: 'http2_compression_invalid', code: 9 },
    SMALL_TABLE,
  ],
  [
    'a table beyond the acknowledged limit, later',
    [ACKNOWLEDGED, request(1, sizeUpdate(1024)), request(3, sizeUpdate(1025))],
    { fault: 'http2_compression_invalid', code: 9 },
    SMALL_TABLE,
  ],
  [
    'a smaller table that is acknowledged and not said',
    [ACKNOWLEDGED, request(1)],
    { fault: 'http2_compression_invalid', code: 9 },
    SMALL_TABLE,
  ],
  [
    'a smaller table that is not said behind other blocks',
    [request(1), ACKNOWLEDGED, request(3)],
    { fault: 'http2_compression_invalid', code: 9 },
    SMALL_TABLE,
  ],
  [
    'a smaller table that is not said in an empty block of trailers',
    [request(1, [], 0), ACKNOWLEDGED, frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1)],
    { fault: 'http2_compression_invalid', code: 9 },
    SMALL_TABLE,
  ],
  [
    'a smaller table that a large block does not say',
    [ACKNOWLEDGED, LARGE_REQUEST],
    { fault: 'http2_compression_invalid', code: 9 },
    SMALL_TABLE,
  ],
  [
    'a smaller table that a block says behind a field',
    [ACKNOWLEDGED, frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, [...block, ...sizeUpdate(7)])],
    { fault: 'http2_compression_invalid', code: 9 },
    SMALL_TABLE,
  ],
  [
    'a limit that is no smaller than the default',
    [ACKNOWLEDGED, request(1), request(3, sizeUpdate(65_536))],
    { events: ['1 head GET / end', '3 head GET / end'] },
    { headerTableBytes: 65_536 },
  ],
  // 5. Streams
  [
    'HEADERS on stream 0',
    [frame(FrameType.HEADERS, END_HEADERS, 0, block)],
    { fault: 'http2_stream_id_invalid', code: 1 },
  ],
  ['a stream of an even number', [headers(2)], { fault: 'http2_stream_id_invalid', code: 1 }],
  ['a stream below the last one', [headers(5), headers(3)], { fault: 'http2_stream_closed', code: 5 }],
  ['DATA on a stream that is idle', [data(1, 'x')], { fault: 'http2_stream_id_invalid', code: 1 }],
  ['RST_STREAM on a stream that is idle', [reset(1)], { fault: 'http2_stream_id_invalid', code: 1 }],
  ['WINDOW_UPDATE on a stream that is idle', [windowUpdate(1, 1)], { fault: 'http2_stream_id_invalid', code: 1 }],
  ['WINDOW_UPDATE on an idle stream of this side', [windowUpdate(2, 1)], { fault: 'http2_stream_id_invalid', code: 1 }],
  [
    'PRIORITY on a stream that is idle',
    [frame(FrameType.PRIORITY, 0, 9, Buffer.alloc(5)), done],
    { events: ['1 head GET / end'] },
  ],
  ['DATA behind the end', [done, data(1, 'x')], { resets: { 1: ErrorCode.STREAM_CLOSED } }],
  ['HEADERS behind the end', [done, done], { resets: { 1: ErrorCode.STREAM_CLOSED } }],
  ['DATA behind a reset of its own', [open, reset(1), data(1, 'x')], { fault: 'http2_stream_closed', code: 5 }],
  ['HEADERS behind a reset of its own', [open, reset(1), done], { fault: 'http2_stream_closed', code: 5 }],
  [
    'WINDOW_UPDATE, RST_STREAM and PRIORITY behind a reset',
    [open, reset(1), windowUpdate(1, 5), reset(1), frame(FrameType.PRIORITY, 0, 1, Buffer.alloc(5))],
    { events: ['1 head POST /', '1 reset 8 there remote_reset', 'idle'] },
  ],
  // 6.1 DATA
  ['DATA on stream 0', [data(0, 'x')], { fault: 'http2_stream_id_invalid', code: 1 }],
  [
    'content in two frames',
    [open, data(1, 'ab'), data(1, 'c', END_STREAM)],
    { events: ['1 head POST /', '1 data ab', '1 data c end'] },
  ],
  [
    'content with padding',
    [open, frame(FrameType.DATA, PADDED | END_STREAM, 1, [3, 0x61, 0, 0, 0])],
    { events: ['1 head POST /', '1 data a end'] },
  ],
  [
    'nothing but padding',
    [open, frame(FrameType.DATA, PADDED, 1, [1, 0]), data(1, 'z', END_STREAM)],
    { events: ['1 head POST /', '1 data z end'] },
  ],
  [
    'padding as long as the frame',
    [open, frame(FrameType.DATA, PADDED, 1, [2, 0])],
    { fault: 'http2_padding_invalid', code: 1 },
  ],
  [
    'a padded frame without a length of padding',
    [open, frame(FrameType.DATA, PADDED, 1, [])],
    { fault: 'http2_padding_invalid' },
  ],
  // 6.2 HEADERS
  [
    'HEADERS with padding and priority',
    [
      frame(
        FrameType.HEADERS,
        END_HEADERS | END_STREAM | PADDED | PRIORITY,
        1,
        Buffer.concat([Buffer.from([2, 0, 0, 0, 0, 9]), block, Buffer.alloc(2)]),
      ),
    ],
    { events: ['1 head GET / end'] },
  ],
  [
    'HEADERS with more padding than there is',
    [frame(FrameType.HEADERS, END_HEADERS | PADDED, 1, [9, 0])],
    { fault: 'http2_padding_invalid', code: 1 },
  ],
  [
    'HEADERS too short for its priority',
    [frame(FrameType.HEADERS, END_HEADERS | PRIORITY, 1, [0, 0])],
    { fault: 'http2_frame_size_invalid' },
  ],
  // 6.3, 6.4
  ['PRIORITY on stream 0', [frame(FrameType.PRIORITY, 0, 0, Buffer.alloc(5))], { fault: 'http2_stream_id_invalid' }],
  [
    'PRIORITY of four octets',
    [open, frame(FrameType.PRIORITY, 0, 1, Buffer.alloc(4))],
    { resets: { 1: ErrorCode.FRAME_SIZE_ERROR } },
  ],
  ['RST_STREAM on stream 0', [reset(0)], { fault: 'http2_stream_id_invalid' }],
  [
    'RST_STREAM of three octets',
    [open, frame(FrameType.RST_STREAM, 0, 1, [0, 0, 0])],
    { fault: 'http2_frame_size_invalid', code: 6 },
  ],
  [
    'a reset',
    [open, reset(1, 5)],
    { events: ['1 head POST /', '1 reset 5 there remote_reset', 'idle'], stats: ['rx_reset'] },
  ],
  // 6.5 SETTINGS
  ['SETTINGS on a stream', [frame(FrameType.SETTINGS, 0, 1)], { fault: 'http2_stream_id_invalid' }],
  [
    'SETTINGS of five octets',
    [frame(FrameType.SETTINGS, 0, 0, Buffer.alloc(5))],
    { fault: 'http2_frame_size_invalid', code: 6 },
  ],
  [
    'an acknowledgement with settings',
    [frame(FrameType.SETTINGS, ACK, 0, Buffer.alloc(6))],
    { fault: 'http2_frame_size_invalid' },
  ],
  ['ENABLE_PUSH of 2', [setting(2, 2)], { fault: 'http2_settings_invalid', code: 1 }],
  ['a window beyond 2^31-1', [setting(4, 2 ** 31)], { fault: 'http2_window_overflow', code: 3 }],
  ['a frame size below 2^14', [setting(5, 16383)], { fault: 'http2_settings_invalid', code: 1 }],
  ['a frame size above 2^24-1', [setting(5, 2 ** 24)], { fault: 'http2_settings_invalid' }],
  ['ENABLE_CONNECT_PROTOCOL of 2', [setting(8, 2)], { fault: 'http2_settings_invalid', code: 1 }],
  ['NO_RFC7540_PRIORITIES of 2', [setting(9, 2)], { fault: 'http2_settings_invalid', code: 1 }],
  [
    'one setting twice, of which the last counts',
    [open, frame(FrameType.SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0, 0, 4, 127, 255, 255, 255]), windowUpdate(1, 1)],
    { resets: { 1: ErrorCode.FLOW_CONTROL_ERROR } },
  ],
  ['a setting that nobody knows', [setting(99, 1), done], { events: ['1 head GET / end'] }],
  [
    'a window that settings make too large',
    [open, windowUpdate(1, 2 ** 31 - 1 - 65535), setting(4, 65536)],
    { fault: 'http2_window_overflow', code: 3 },
  ],
  // 6.6 to 6.9
  [
    'PUSH_PROMISE of a client',
    [frame(FrameType.PUSH_PROMISE, END_HEADERS, 1, Buffer.alloc(8))],
    { fault: 'http2_push_refused', code: 1 },
  ],
  ['PING on a stream', [frame(FrameType.PING, 0, 1, Buffer.alloc(8))], { fault: 'http2_stream_id_invalid' }],
  [
    'PING of seven octets',
    [frame(FrameType.PING, 0, 0, Buffer.alloc(7))],
    { fault: 'http2_frame_size_invalid', code: 6 },
  ],
  ['an answer to no PING', [frame(FrameType.PING, ACK, 0, Buffer.alloc(8)), done], { events: ['1 head GET / end'] }],
  ['GOAWAY on a stream', [frame(FrameType.GOAWAY, 0, 1, Buffer.alloc(8))], { fault: 'http2_stream_id_invalid' }],
  ['GOAWAY of seven octets', [frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(7))], { fault: 'http2_frame_size_invalid' }],
  ['GOAWAY', [frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(7), word(2)]))], { events: ['goaway 7 2'] }],
  ['WINDOW_UPDATE of zero on the connection', [windowUpdate(0, 0)], { fault: 'http2_window_update_of_zero', code: 1 }],
  ['WINDOW_UPDATE of zero on a stream', [open, windowUpdate(1, 0)], { resets: { 1: ErrorCode.PROTOCOL_ERROR } }],
  [
    'WINDOW_UPDATE of three octets',
    [frame(FrameType.WINDOW_UPDATE, 0, 0, [0, 0, 1])],
    { fault: 'http2_frame_size_invalid', code: 6 },
  ],
  ['a connection window beyond 2^31-1', [windowUpdate(0, 2 ** 31 - 1)], { fault: 'http2_window_overflow', code: 3 }],
  [
    'a stream window beyond 2^31-1',
    [open, windowUpdate(1, 2 ** 31 - 1)],
    { resets: { 1: ErrorCode.FLOW_CONTROL_ERROR } },
  ],
  [
    'more content than the stream may have',
    [open, data(1, 'x'.repeat(10)), data(1, 'x'.repeat(10))],
    { resets: { 1: ErrorCode.FLOW_CONTROL_ERROR }, keeps: true },
    { streamWindowBytes: 15 },
  ],
  [
    'padding that fills the window of a stream',
    [open, frame(FrameType.DATA, PADDED, 1, [14, ...Buffer.alloc(15)])],
    { resets: { 1: ErrorCode.FLOW_CONTROL_ERROR }, keeps: true },
    { streamWindowBytes: 15 },
  ],
  [
    'more content than the connection may have',
    [open, repeat(5, data(1, 'x'.repeat(16000)))],
    { fault: 'http2_window_exceeded', code: 3, keeps: true },
    { connectionWindowBytes: 65535, streamWindowBytes: 10 ** 6 },
  ],
  // 8. Messages
  [
    'trailers',
    [open, data(1, 'a'), headers(1, [['x', 'y']])],
    { events: ['1 head POST /', '1 data a', '1 trailers x: y'], stats: ['trailers'] },
  ],
  [
    'trailers that do not end the stream',
    [open, headers(1, [['x', 'y']], 0)],
    { resets: { 1: 1 }, stats: ['rx_messaging_error', 'tx_reset'] },
    STREAMWISE,
  ],
  ['a pseudo field in trailers', [open, headers(1, [[':path', '/']])], { resets: { 1: 1 } }, STREAMWISE],
  [
    'less content than announced',
    [headers(1, [...POST, ['content-length', '3']], 0), data(1, 'ab', END_STREAM)],
    { resets: { 1: 1 } },
    STREAMWISE,
  ],
  [
    'more content than announced',
    [headers(1, [...POST, ['content-length', '3']], 0), data(1, 'abcd')],
    { resets: { 1: 1 } },
    STREAMWISE,
  ],
  [
    'as much as announced, then trailers',
    [headers(1, [...POST, ['content-length', '1']], 0), data(1, 'a'), headers(1, [['x', 'y']])],
    { events: ['1 head POST /', '1 data a', '1 trailers x: y'] },
  ],
  [
    'less than announced, then trailers',
    [headers(1, [...POST, ['content-length', '2']], 0), data(1, 'a'), headers(1, [['x', 'y']])],
    { resets: { 1: 1 } },
    STREAMWISE,
  ],
  [
    'a head with a fault, and the streams beside it',
    [headers(1, [[':method', 'GET']]), headers(3)],
    { resets: { 1: 1 }, events: ['idle', '3 head GET / end'] },
    STREAMWISE,
  ],
  [
    'a head with a fault, without the option',
    [headers(1, [[':method', 'GET']])],
    { fault: 'pseudo_header_missing', code: 1, stats: ['rx_messaging_error'] },
  ],
  [
    'a head of too many fields, and the streams beside it',
    [headers(1, MANY), headers(3)],
    { events: ['idle', '3 head GET / end'], stats: ['header_overflow'], answers: { 1: '431' } },
  ],
  [
    'the same of a request with content, which is thrown away',
    [headers(1, MANY, 0), data(1, 'x'), data(1, 'y', END_STREAM), headers(3)],
    { events: ['idle', '3 head GET / end'], answers: { 1: '431' } },
  ],
  [
    'trailers of too many fields',
    [open, headers(1, MANY.slice(4)), headers(3)],
    { resets: { 1: ErrorCode.ENHANCE_YOUR_CALM }, stats: ['header_overflow', 'tx_reset'] },
  ],
  // Floods
  [
    'a stream too many',
    [open, headers(3), headers(5)],
    {
      resets: { 3: ErrorCode.REFUSED_STREAM, 5: ErrorCode.REFUSED_STREAM },
      stats: ['stream_refused_errors', 'tx_reset', 'stream_refused_errors', 'tx_reset'],
    },
    { maxConcurrentStreams: 1 },
  ],
  [
    'empty DATA again and again',
    [open, data(1, ''), data(1, '')],
    { fault: 'http2_empty_frames_flood', code: 11, stats: ['inbound_empty_frames_flood'] },
  ],
  [
    'DATA of nothing but padding again and again',
    [open, frame(FrameType.DATA, PADDED, 1, [3, 0, 0, 0]), frame(FrameType.DATA, PADDED, 1, [0])],
    { fault: 'http2_empty_frames_flood', code: 11, stats: ['inbound_empty_frames_flood'] },
  ],
  [
    'padding between content, also padded, and at its end',
    [
      open,
      frame(FrameType.DATA, PADDED, 1, [1, 0]),
      frame(FrameType.DATA, PADDED, 1, [1, 120, 0]),
      frame(FrameType.DATA, PADDED, 1, [1, 0]),
      frame(FrameType.DATA, PADDED | END_STREAM, 1, [1, 0]),
    ],
    { events: ['1 head POST /', '1 data x', '1 data  end'] },
  ],
  [
    'empty DATA between content',
    [open, data(1, ''), data(1, 'x'), data(1, ''), data(1, 'y', END_STREAM)],
    { events: ['1 head POST /', '1 data x', '1 data y end'] },
  ],
  [
    'empty CONTINUATIONs',
    [frame(FrameType.HEADERS, 0, 1, block), repeat(2, frame(FrameType.CONTINUATION, 0, 1))],
    { fault: 'http2_empty_frames_flood', code: 11 },
  ],
  [
    'priorities',
    [repeat(101, frame(FrameType.PRIORITY, 0, 1, Buffer.alloc(5)))],
    { fault: 'http2_priority_flood', code: 11, stats: ['inbound_priority_frames_flood'] },
  ],
  [
    'window updates',
    [repeat(6, windowUpdate(0, 1))],
    { fault: 'http2_window_update_flood', code: 11, stats: ['inbound_window_update_frames_flood'] },
  ],
  [
    'pings of somebody who reads nothing',
    [repeat(1001, frame(FrameType.PING, 0, 0, Buffer.alloc(8)))],
    { fault: 'http2_outbound_control_flood', code: 11, stats: ['outbound_control_flood'] },
  ],
  [
    'settings of somebody who reads nothing',
    [repeat(1001, SETTINGS)],
    { fault: 'http2_outbound_control_flood', code: 11 },
  ],
  [
    'requests that are taken back at once',
    [
      Buffer.concat(
        Array.from({ length: 501 }, (_, index) => Buffer.concat([headers(index * 2 + 1), reset(index * 2 + 1)])),
      ),
    ],
    { fault: 'http2_premature_resets', code: 11 },
  ],
  [
    'requests that this side is made to take back',
    [
      Buffer.concat(
        Array.from({ length: 501 }, (_, index) =>
          Buffer.concat([headers(index * 2 + 1, POST, 0), windowUpdate(index * 2 + 1, 0)]),
        ),
      ),
    ],
    { fault: 'http2_premature_resets', code: 11 },
    { maxOutboundControlFrames: 10_000 },
  ],
];
