// What the buffer filter and its configuration share.

/** Of the filter itself, or what one level of a route says instead. */
export interface BufferSettings {
  /** Longer requests get a 413. */
  readonly maxRequestBytes: number;
}
