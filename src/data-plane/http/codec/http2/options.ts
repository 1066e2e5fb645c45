// Why sessions end by a fault of their peer.

import type { Http2Settings } from '../../../../snapshot/index.ts';
import type { Http2Stat } from '../../../../stats/index.ts';
import { ErrorCode } from './frames.ts';

/** What a session is told of its limits; pings are its owner's affair. */
export type Http2Options = Omit<Http2Settings, 'keepalive'>;

/** Why a session ends, by the stat that counts it; those without a stat of their own are protocol errors. */
export interface SessionFault {
  readonly code: number;
  /** Stable, for details. */
  readonly reason: string;
  /** Name in `http2.*`, null for none. */
  readonly stat: Http2Stat | null;
}

function fault(code: number, reason: string, stat: Http2Stat | null = null): SessionFault {
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
  headTimeout: fault(ENHANCE_YOUR_CALM, 'http2_header_block_timeout'),
  settingsTimeout: fault(ErrorCode.SETTINGS_TIMEOUT, 'http2_settings_timeout'),
  keepaliveTimeout: fault(ErrorCode.NO_ERROR, 'http2_ping_timeout', 'keepalive_timeout'),
  noMemory: fault(ErrorCode.INTERNAL_ERROR, 'http2_out_of_table_memory'),
} as const;
