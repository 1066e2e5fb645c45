// Which pool a host has for its HTTP requests.

import { Http1ClientConnection } from '../../http/codec/http1/client-connection.ts';
import { Http2ClientConnection } from '../../http/codec/http2/client-connection.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { CircuitBreaker } from '../circuit-breaker.ts';
import type { Opening } from '../opening.ts';
import type { OpenConnection } from './connection-owner.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { NegotiatedConnection } from './negotiated-connection.ts';
import type { PoolHost } from './pool-host.ts';
import { StreamPool } from './stream-pool.ts';

export type PoolProtocol = 'http1' | 'http2' | 'by-alpn';

/**
 * @param breaker limits of the routing priority that the pool serves.
 * @param opening how its connections begin.
 * @param protocol that the requests go over; the host's cluster has settings of HTTP/2 for any but HTTP/1.
 */
export type CreatePool = (
  context: WorkerContext,
  host: PoolHost,
  breaker: CircuitBreaker,
  opening: Opening,
  protocol: PoolProtocol,
) => ConnectionPool;

const openHttp1: OpenConnection = (context, host, owner) => new Http1ClientConnection(context, host, owner);

export const createPool: CreatePool = (context, host, breaker, opening, protocol) => {
  if (protocol === 'http1') return new StreamPool(context, host, breaker, opening, openHttp1);
  const { settings } = host.cluster.settings.http2!;
  const open: OpenConnection =
    protocol === 'http2'
      ? (worker, to, owner) => new Http2ClientConnection(worker, to, owner, settings)
      : (worker, to, owner) => new NegotiatedConnection(worker, to, owner, settings);
  return new StreamPool(context, host, breaker, opening, open);
};
