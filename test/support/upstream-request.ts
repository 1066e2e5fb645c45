// A request straight to a pool of upstream connections, without a client and without a route.

import type { Http1ClientConnection } from '../../src/data-plane/http/codec/http1/client-connection.ts';
import type { ResponseReceiver } from '../../src/data-plane/http/codec/http1/response-receiver.ts';
import type { PoolClient } from '../../src/data-plane/upstream/pool/http1-pool.ts';
import { Method } from '../../src/wasm/http1.ts';

export const HEAD = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
export const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

/** A request that is sent as soon as there is a connection. */
export class UpstreamRequest implements PoolClient, ResponseReceiver {
  readonly awaitsUpgrade = false;
  readonly bufferLimitBytes = 1024;
  connection: Http1ClientConnection | null = null;
  /** Empty until it is over: `answered`, or why it is not, and what the transport says of that. */
  outcome = '';

  onConnection(connection: Http1ClientConnection): void {
    this.connection = connection;
    connection.start(this, Method.GET, HEAD, Buffer.alloc(0), 0, 0, true);
  }

  onPoolFailure(failure: string, detail: string): void {
    this.outcome = failure + detail;
  }

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
