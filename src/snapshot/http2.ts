// What HTTP/2 sessions are told of their limits, of either role: Http2ProtocolOptions with its defaults, as numbers.

export interface Http2Settings {
  /** Octets of the table by which peers compress what they send here. */
  readonly headerTableBytes: number;
  /** Streams that the peer may have open; of a client, those that it opens itself. */
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
  /** Strings of header blocks are Huffman-coded where that is shorter. */
  readonly encodesHuffman: boolean;
  /** Null for no pings. */
  readonly keepalive: Http2KeepaliveSettings | null;
}

export interface Http2KeepaliveSettings {
  /** Between two pings; 0 for none by time. */
  readonly intervalMs: number;
  /** Within which a ping has to be answered. */
  readonly timeoutMs: number;
  /** By how much of itself an interval may be longer. */
  readonly jitterPercent: number;
  /** A client that has sent nothing for so long pings before its next request; 0 for never. */
  readonly idleIntervalMs: number;
}
