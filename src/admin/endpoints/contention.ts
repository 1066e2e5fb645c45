// GET /contention: what threads have waited for, where that is traced. One cycle is a nanosecond.

import { jsonInt64 } from '../../base/json.ts';
import { endpoint } from '../endpoint.ts';
import { jsonBody } from '../render/json.ts';
import { jsonResponse, textResponse } from '../response.ts';

const NOT_TRACED = 'Mutex contention tracing is not enabled. To enable, run weir with flag --enable-mutex-tracing.';

export const CONTENTION = endpoint({
  path: '/contention',
  help: 'Waits of threads for processors, in nanoseconds, with --enable-mutex-tracing',
  async handle({ server }) {
    if (server.contention === undefined) return textResponse(NOT_TRACED);
    const contention = await server.contention();
    if (contention === undefined) return textResponse('this system does not tell what threads wait for\n', 501);
    const { count, currentWaitNs, lifetimeWaitNs } = contention;
    return jsonResponse(
      jsonBody({
        num_contentions: jsonInt64(count),
        current_wait_cycles: jsonInt64(currentWaitNs),
        lifetime_wait_cycles: jsonInt64(lifetimeWaitNs),
      }),
    );
  },
});
