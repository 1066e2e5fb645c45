// Which pool a host has for its HTTP requests.

import type { WorkerContext } from '../../worker-context.ts';
import type { CircuitBreaker } from '../circuit-breaker.ts';
import type { ConnectionPool } from './connection-pool.ts';
import { Http1Pool } from './http1-pool.ts';
import type { PoolHost } from './pool-host.ts';

/**
 * @param breaker limits of the routing priority that the pool serves.
 * @param preamble what its connections begin with; null for nothing.
 */
export type CreatePool = (
  context: WorkerContext,
  host: PoolHost,
  breaker: CircuitBreaker,
  preamble: Buffer | null,
) => ConnectionPool;

export const createPool: CreatePool = (context, host, breaker, preamble) =>
  new Http1Pool(context, host, breaker, preamble);
