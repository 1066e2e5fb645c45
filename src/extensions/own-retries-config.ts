// What extensions ask services again for where `retry_on` names nothing.

import type { RetryCondition } from '../snapshot/index.ts';

/** Of services of HTTP. */
export const HTTP_RETRIES: readonly RetryCondition[] = ['5xx', 'gateway-error', 'connect-failure', 'reset'];
/** Of services of gRPC, whose failures stand in heads without a body. */
export const GRPC_RETRIES: readonly RetryCondition[] = [...HTTP_RETRIES, 'unavailable'];
