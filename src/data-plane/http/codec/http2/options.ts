// What a session is told of its limits: Http2ProtocolOptions with its defaults, as numbers.

import { ErrorCode } from './frames.ts';

export interface Http2Options {
  /** Octets of the table by which peers compress what they send here. */
  readonly headerTableBytes: number;
  /** Streams that the peer may have open. */
  readonly maxConcurrentStreams: number;
  readonly streamWindowBytes: number;
  readonly connectionWindowBytes: number;
  /** Extended CONNECT is taken (RFC 8441). */
  readonly allowConnect: boolean;
  /** Frames that may wait because the peer reads nothing, and those of them that are answers to its control frames. */
  readonly maxOutboundFrames: number;
  readonly maxOutboundControlFrames: number;
  /** HEADERS, CONTINUATION and DATA without content and without an end, one behind the other. */
  readonly maxConsecutiveEmptyFrames: number;
  readonly maxPriorityFramesPerStream: number;
  readonly maxWindowUpdatesPerDataFrame: number;
  /** A message with a fault ends its stream, not the connection. */
  readonly isStreamErrorOnInvalidMessage: boolean;
  /** (identifier, value) of settings that are announced besides. */
  readonly customSettings: readonly number[];
}

export const DEFAULT_HTTP2_OPTIONS: Http2Options = {
  headerTableBytes: 4096,
  maxConcurrentStreams: 1024,
  streamWindowBytes: 16 * 2 ** 20,
  connectionWindowBytes: 24 * 2 ** 20,
  allowConnect: false,
  maxOutboundFrames: 10_000,
  maxOutboundControlFrames: 1000,
  maxConsecutiveEmptyFrames: 1,
  maxPriorityFramesPerStream: 100,
  maxWindowUpdatesPerDataFrame: 10,
  isStreamErrorOnInvalidMessage: false,
  customSettings: [],
};

/** Why a session ends, by the stat that counts it; those without a stat of their own are protocol errors. */
export interface SessionFault {
  readonly code: number;
  /** Stable, for details. */
  readonly reason: string;
  /** Name in `http2.*`, null for none. */
  readonly stat: string | null;
}

function fault(code: number, reason: string, stat: string | null = null): SessionFault {
  return Object.freeze({ code, reason, stat });
}

const { PROTOCOL_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, ENHANCE_YOUR_CALM } = ErrorCode;

export const Fault = {
  preface: fault(PROTOCOL_ERROR, 'http2_preface_invalid'),
  firstFrame: fault(PROTOCOL_ERROR, 'http2_settings_missing'),
  frameSize: fault(FRAME_SIZE_ERROR, 'http2_frame_size_invalid'),
  frameOrder: fault(PROTOCOL_ERROR, 'http2_frame_out_of_order'),
  streamId: fault(PROTOCOL_ERROR, 'http2_stream_id_invalid'),
  streamClosed: fault(ErrorCode.STREAM_CLOSED, 'http2_stream_closed'),
  padding: fault(PROTOCOL_ERROR, 'http2_padding_invalid'),
  settings: fault(PROTOCOL_ERROR, 'http2_settings_invalid'),
  push: fault(PROTOCOL_ERROR, 'http2_push_refused'),
  window: fault(FLOW_CONTROL_ERROR, 'http2_window_overflow'),
  windowZero: fault(PROTOCOL_ERROR, 'http2_window_update_of_zero'),
  windowExceeded: fault(FLOW_CONTROL_ERROR, 'http2_window_exceeded'),
  compression: fault(ErrorCode.COMPRESSION_ERROR, 'http2_compression_invalid'),
  message: fault(PROTOCOL_ERROR, 'http2_message_invalid', 'rx_messaging_error'),
  blockTooLarge: fault(ENHANCE_YOUR_CALM, 'http2_header_block_too_large', 'header_overflow'),
  emptyFrames: fault(ENHANCE_YOUR_CALM, 'http2_empty_frames_flood', 'inbound_empty_frames_flood'),
  priorityFrames: fault(ENHANCE_YOUR_CALM, 'http2_priority_flood', 'inbound_priority_frames_flood'),
  windowUpdates: fault(ENHANCE_YOUR_CALM, 'http2_window_update_flood', 'inbound_window_update_frames_flood'),
  outboundFrames: fault(ENHANCE_YOUR_CALM, 'http2_outbound_flood', 'outbound_flood'),
  outboundControl: fault(ENHANCE_YOUR_CALM, 'http2_outbound_control_flood', 'outbound_control_flood'),
  resets: fault(ENHANCE_YOUR_CALM, 'http2_premature_resets', null),
  noMemory: fault(ErrorCode.INTERNAL_ERROR, 'http2_out_of_table_memory'),
} as const;
