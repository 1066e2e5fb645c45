// Which pool a host has for its HTTP requests.

import { Http1ClientConnection } from '../../http/codec/http1/client-connection.ts';
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
 */
export type CreatePool = (
  context: WorkerContext,
  host: PoolHost,
  breaker: CircuitBreaker,
  opening: Opening,
) => ConnectionPool;

const openHttp1: OpenConnection = (context, host, owner) => new Http1ClientConnection(context, host, owner);

export const createPool: CreatePool = (context, host, breaker, opening) =>
  new StreamPool(context, host, breaker, opening, openHttp1);
