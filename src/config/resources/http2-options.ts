// Http2ProtocolOptions message → Http2Settings, of clients and upstreams alike.

import type { Http2KeepaliveSettings, Http2Settings } from '../../snapshot/index.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Http2ProtocolOptions } from './messages.ts';
import { durationMsOr, valueOr } from './units.ts';

/** Where nothing is said. */
export const DEFAULT_HTTP2_SETTINGS: Http2Settings = {
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
  encodesHuffman: false,
  keepalive: null,
};

/** Largest table that is kept for a peer, whatever is asked for. */
const LARGEST_TABLE_BYTES = 65_536;
const DEFAULT_JITTER_PERCENT = 15;
/** The only size of frames that is taken. */
const FRAME_BYTES = 16_384;

// Settings that have fields of their own, or rules (RFC 9113 section 6.5.2).
const HEADER_TABLE_SIZE = 1;
const ENABLE_PUSH = 2;
const MAX_CONCURRENT_STREAMS = 3;
const INITIAL_WINDOW_SIZE = 4;
const MAX_FRAME_SIZE = 5;
const ENABLE_CONNECT_PROTOCOL = 8;

type NamedField = 'hpack_table_size' | 'max_concurrent_streams' | 'initial_stream_window_size' | 'allow_connect';

const NAMED_FIELDS: Readonly<Record<number, NamedField>> = {
  [HEADER_TABLE_SIZE]: 'hpack_table_size',
  [MAX_CONCURRENT_STREAMS]: 'max_concurrent_streams',
  [INITIAL_WINDOW_SIZE]: 'initial_stream_window_size',
  [ENABLE_CONNECT_PROTOCOL]: 'allow_connect',
};

/** @param at path of the message. @param message null for defaults. */
export function convertHttp2Options(
  message: Http2ProtocolOptions | null,
  at: string,
  faults: FaultSink,
): Http2Settings {
  if (message === null) return DEFAULT_HTTP2_SETTINGS;
  const base = DEFAULT_HTTP2_SETTINGS;
  const custom = convertCustomSettings(message, `${at}.custom_settings_parameters`, faults);
  const named = (identifier: number): number | undefined => custom.get(identifier);
  const headerTableBytes = named(HEADER_TABLE_SIZE) ?? valueOr(message.hpack_table_size, base.headerTableBytes);
  return {
    headerTableBytes: Math.min(headerTableBytes, LARGEST_TABLE_BYTES),
    maxConcurrentStreams:
      named(MAX_CONCURRENT_STREAMS) ?? valueOr(message.max_concurrent_streams, base.maxConcurrentStreams),
    streamWindowBytes:
      named(INITIAL_WINDOW_SIZE) ?? valueOr(message.initial_stream_window_size, base.streamWindowBytes),
    connectionWindowBytes: valueOr(message.initial_connection_window_size, base.connectionWindowBytes),
    allowConnect: message.allow_connect || named(ENABLE_CONNECT_PROTOCOL) === 1,
    maxOutboundFrames: valueOr(message.max_outbound_frames, base.maxOutboundFrames),
    maxOutboundControlFrames: valueOr(message.max_outbound_control_frames, base.maxOutboundControlFrames),
    maxConsecutiveEmptyFrames: valueOr(
      message.max_consecutive_inbound_frames_with_empty_payload,
      base.maxConsecutiveEmptyFrames,
    ),
    maxPriorityFramesPerStream: valueOr(
      message.max_inbound_priority_frames_per_stream,
      base.maxPriorityFramesPerStream,
    ),
    maxWindowUpdatesPerDataFrame: valueOr(
      message.max_inbound_window_update_frames_per_data_frame_sent,
      base.maxWindowUpdatesPerDataFrame,
    ),
    isStreamErrorOnInvalidMessage: valueOr(
      message.override_stream_error_on_invalid_http_message,
      message.stream_error_on_invalid_http_messaging,
    ),
    customSettings: [...custom].filter(([identifier]) => NAMED_FIELDS[identifier] === undefined).flat(),
    encodesHuffman: valueOr(message.enable_huffman_encoding, base.encodesHuffman),
    keepalive: convertKeepalive(message.connection_keepalive),
  };
}

function convertKeepalive(message: Http2ProtocolOptions['connection_keepalive']): Http2KeepaliveSettings | null {
  if (message === null) return null;
  return {
    intervalMs: durationMsOr(message.interval, 0),
    timeoutMs: durationMsOr(message.timeout, 0),
    jitterPercent: valueOr(message.interval_jitter, DEFAULT_JITTER_PERCENT),
    idleIntervalMs: durationMsOr(message.connection_idle_interval, 0),
  };
}

/** Values by identifier. A setting that has a field of its own is said there, or here. */
function convertCustomSettings(message: Http2ProtocolOptions, at: string, faults: FaultSink): Map<number, number> {
  const values = new Map<number, number>();
  for (const [index, parameter] of message.custom_settings_parameters.entries()) {
    const identifier = valueOr(parameter.identifier, 0);
    const value = valueOr(parameter.value, 0);
    const here = `${at}[${index}]`;
    const field = NAMED_FIELDS[identifier];
    const known = values.get(identifier);
    if (field !== undefined && isSet(message[field])) {
      faults.error(here, `setting ${identifier} is said by ${field} already`);
    } else if (known !== undefined && known !== value) {
      faults.error(here, `setting ${identifier} is ${known} and ${value}`);
    } else if (identifier === ENABLE_PUSH && value !== 0) {
      faults.error(here, 'there is no server push');
    } else if (identifier === MAX_FRAME_SIZE && value !== FRAME_BYTES) {
      faults.error(here, `frames of ${value} bytes; ${FRAME_BYTES} is what is taken`);
    } else if (identifier === ENABLE_CONNECT_PROTOCOL && value > 1) {
      faults.error(here, `setting ${identifier} is ${value}; 0 and 1 mean something`);
    } else if (identifier === INITIAL_WINDOW_SIZE && (value < 65_535 || value > 2_147_483_647)) {
      faults.error(here, `a window of ${value} bytes; 65535 to 2147483647 can be had`);
    } else {
      values.set(identifier, value);
    }
  }
  return values;
}

function isSet(value: Http2ProtocolOptions[NamedField]): boolean {
  return value !== null && value !== false;
}
