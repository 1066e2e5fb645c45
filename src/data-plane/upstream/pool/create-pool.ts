// Which pool a host has for its HTTP requests.

import { Http1ClientConnection } from '../../http/codec/http1/client-connection.ts';
import { Http2ClientConnection } from '../../http/codec/http2/client-connection.ts';
import type { WorkerContext } from '../../worker-context.ts';
import type { CircuitBreaker } from '../circuit-breaker.ts';
import type { Opening } from '../opening.ts';
import type { OpenConnection } from './connection-owner.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { PoolHost } from './pool-host.ts';
import { StreamPool } from './stream-pool.ts';

/**
 * @param breaker limits of the routing priority that the pool serves.
 * @param opening how its connections begin.
 * @param isHttp2 the requests go over HTTP/2, whose settings the host's cluster has.
 */
export type CreatePool = (
  context: WorkerContext,
  host: PoolHost,
  breaker: CircuitBreaker,
  opening: Opening,
  isHttp2: boolean,
) => ConnectionPool;

const openHttp1: OpenConnection = (context, host, owner) => new Http1ClientConnection(context, host, owner);

export const createPool: CreatePool = (context, host, breaker, opening, isHttp2) => {
  if (!isHttp2) return new StreamPool(context, host, breaker, opening, openHttp1);
  const { settings } = host.cluster.settings.http2!;
  const openHttp2: OpenConnection = (worker, to, owner) => new Http2ClientConnection(worker, to, owner, settings);
  return new StreamPool(context, host, breaker, opening, openHttp2);
};
