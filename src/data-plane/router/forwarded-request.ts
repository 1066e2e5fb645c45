// A request on its way to an upstream, as its stream drives it.

import type { Cluster } from '../upstream/cluster.ts';
import type { Host } from '../upstream/host.ts';

export interface ForwardedRequest {
  readonly cluster: Cluster;
  /** The head as sent, latin1. */
  readonly head: string;
  /** The host that the last attempt went to. */
  readonly host: Host | null;
  /** Times that the request has been sent, or was about to be. */
  readonly attempts: number;
  /** True while the request is on its way to an upstream. */
  readonly isSending: boolean;
  /** True when more of the request's body may come. */
  readonly canSend: boolean;
  /** Of the request's body, kept here or not taken by the kernel yet. */
  readonly heldBytes: number;

  /**
   * Chooses a host and sends the head with the first body bytes, now or when a connection is there.
   * @param bytes owned: nobody else writes to bytes[start..end) any more.
   */
  start(bytes: Buffer, start: number, end: number, isEnd: boolean): void;

  /** Sends more of the body; the bytes are given away. @returns false when no more should come for now. */
  send(bytes: Buffer, start: number, end: number, isEnd: boolean): boolean;

  /** The client has taken what was written: go on reading the response. */
  resumeResponse(): void;

  /**
   * The client is gone, or has been answered otherwise.
   * @param isReset what a tunnel carries was broken off: its upstream sees a reset.
   */
  cancel(isReset: boolean): void;

  /** One of the route's limits has passed. @param stat of CLUSTER_STATS, for the limit. */
  timeOut(stat: number): void;
}
