// POST /cpuprofiler and /heapprofiler, GET /heap_dump.

import { endpoint } from '../endpoint.ts';
import { choice } from '../parameter.ts';

const ENABLE = choice({
  help: 'Start or stop it',
  values: ['y', 'n'],
  isRequired: true,
  refusal: '?enable=<y|n>\n',
});

export const CPU_PROFILER = endpoint({
  path: '/cpuprofiler',
  help: 'Start or stop the CPU profiler',
  mutates: true,
  parameters: { enable: ENABLE },
});

export const HEAP_PROFILER = endpoint({
  path: '/heapprofiler',
  help: 'Start or stop the heap profiler',
  mutates: true,
  parameters: { enable: ENABLE },
});

export const HEAP_DUMP = endpoint({ path: '/heap_dump', help: 'Profile of the heap as it is' });
