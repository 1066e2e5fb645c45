// The numbers of HTTP/2's frames (RFC 9113 sections 4, 6 and 7).

export const FRAME_HEADER_BYTES = 9;
/** Largest payload that every peer takes; this side never announces another one. */
export const DEFAULT_FRAME_BYTES = 16384;
export const LARGEST_FRAME_BYTES = 16777215;
export const DEFAULT_WINDOW = 65535;
export const LARGEST_WINDOW = 2 ** 31 - 1;

export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const FrameFlag = { ACK: 1, END_STREAM: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 32 } as const;

export const Setting = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
  /** RFC 8441. */
  ENABLE_CONNECT_PROTOCOL: 8,
  /** RFC 9218. */
  NO_RFC7540_PRIORITIES: 9,
} as const;

export const ErrorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
} as const;

/** What a client sends first. */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** In which no request of HTTP/1 begins (RFC 9113 section 3.4). */
const CERTAIN_BYTES = 'PRI * HTTP/2'.length;

/** Whether the bytes, which are no request of HTTP/1, begin a session. */
export function beginsAsHttp2(bytes: Buffer): boolean {
  const length = Math.min(bytes.length, PREFACE.length);
  return length >= CERTAIN_BYTES && bytes.compare(PREFACE, 0, length, 0, length) === 0;
}
