// What a proxied TCP connection asks of its upstream, whether that is a connection of its own or a tunnel through an HTTP proxy.

import type { ConnectionEnds } from '../upstream/upstream-facts.ts';

export interface ProxiedUpstream {
  /** Of the connection that the bytes go over, from `onUpstreamConnected` on. */
  readonly ends: ConnectionEnds;
  /** On their way, and not taken by the kernel yet. */
  readonly unsentBytes: number;
  /** @param bytes given away. @returns false when no more should come before `onUpstreamDrain`. */
  write(bytes: Buffer, length: number): boolean;
  /** Sends the end of the stream behind what was written. */
  end(): void;
  /** Reads on after the owner had returned false. */
  resume(): void;
  /** It has served a connection, as far as who watches its host has not seen that itself. */
  noteServed(): void;
  /** It has not come about in time; the owner is told so. */
  timeOut(): void;
  destroy(): void;
  /** Ends it as one that was broken off, at once. */
  reset(): void;
}
