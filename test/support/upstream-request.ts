// A request straight to a pool of upstream connections, without a client and without a route.

import assert from 'node:assert/strict';
import type { ResponseReceiver, UpstreamStream } from '../../src/data-plane/http/codec/upstream-stream.ts';
import type { Host } from '../../src/data-plane/upstream/host.ts';
import type { PoolClient } from '../../src/data-plane/upstream/pool/connection-pool.ts';
import { StreamPool } from '../../src/data-plane/upstream/pool/stream-pool.ts';
import { Framing, Method } from '../../src/wasm/http1.ts';
import { ClusterPriority } from '../../src/wasm/shared-memory.ts';

export const HEAD = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
export const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** That of a routing priority, of requests of all clients. */
export function streamPool(host: Host, priority: ClusterPriority = ClusterPriority.default): StreamPool {
  const pool = host.pools.for(priority);
  assert.ok(pool instanceof StreamPool);
  return pool;
}

/** A request that is sent as soon as there is a connection. */
export class UpstreamRequest implements PoolClient, ResponseReceiver {
  readonly awaitsUpgrade = false;
  readonly matchesUpstreamScheme = false;
  readonly upstreamWire = null;
  readonly requestFraming = Framing.NONE;
  readonly requestTrailers = null;
  readonly bufferLimitBytes = 1024;
  stream: UpstreamStream | null = null;
  /** Empty until it is over: `answered`, or why it is not, and what the transport says of that. */
  outcome = '';

  onStream(stream: UpstreamStream): void {
    this.stream = stream;
    stream.start(this, Method.GET, HEAD, Buffer.alloc(0), 0, 0, true);
  }

  onPoolFailure(failure: string, detail: string): void {
    this.outcome = failure + detail;
  }

  onInterimHead(): void {}

  onResponseHead(): boolean {
    this.outcome = 'answered';
    return true;
  }

  onResponseBody(): boolean {
    return true;
  }

  onResponseTrailers(): void {}

  onUpstreamReset(failure: string): void {
    this.outcome = failure;
  }

  onUpstreamDrain(): void {}
}
