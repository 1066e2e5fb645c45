// /memory, by GET or POST: memory in use.

import { jsonInt64 } from '../../base/json.ts';
import { endpoint } from '../endpoint.ts';
import { jsonBody } from '../render/json.ts';
import { jsonResponse } from '../response.ts';

export const MEMORY = endpoint({
  path: '/memory',
  help: 'Memory in use: heaps of all threads and what they share, in bytes',
  async handle({ server }) {
    const { allocated, heap, unmapped, free, threadCaches, physical } = await server.memory();
    return jsonResponse(
      jsonBody({
        allocated: jsonInt64(allocated),
        heap_size: jsonInt64(heap),
        pageheap_unmapped: jsonInt64(unmapped),
        pageheap_free: jsonInt64(free),
        total_thread_cache: jsonInt64(threadCaches),
        total_physical_bytes: jsonInt64(physical),
      }),
    );
  },
});
