// POST /cpuprofiler and /heapprofiler, GET /heap_dump.

import { endpoint } from '../endpoint.ts';
import { choice } from '../parameter.ts';
import type { AdminQuery } from '../query.ts';
import { type AdminResponse, BYTES, textResponse } from '../response.ts';
import type { ProfilerKind, ProfilerOutcome, ServerCommands } from '../views/index.ts';

const USAGE = '?enable=<y|n>\n';
const ENABLE = choice({
  help: 'Start it, or stop it and write the file of admin.profile_path',
  values: ['y', 'n'],
  isRequired: true,
  refusal: USAGE,
});
const MANUAL = 'https://github.com/google/pprof/blob/main/doc/README.md';

export const CPU_PROFILER = endpoint({
  path: '/cpuprofiler',
  help: 'Start or stop the CPU profiler',
  mutates: true,
  parameters: { enable: ENABLE },
  async handle({ commands }, { enable }, { query }) {
    const outcome = await order(commands, 'cpu', enable, query);
    if (outcome === undefined) return textResponse(USAGE, 400);
    if (typeof outcome === 'string') return textResponse('OK\n');
    return failed(`failure to ${enable === 'y' ? 'start' : 'stop'} the profiler`, outcome.failure);
  },
});

export const HEAP_PROFILER = endpoint({
  path: '/heapprofiler',
  help: 'Start or stop the heap profiler',
  mutates: true,
  parameters: { enable: ENABLE },
  async handle({ commands, server }, { enable }, { query }) {
    const outcome = await order(commands, 'heap', enable, query);
    if (outcome === undefined) return textResponse(USAGE, 400);
    if (outcome === 'is-on') return textResponse('Fail to start heap profiler: already started', 400);
    if (outcome === 'is-off') return textResponse('Fail to stop heap profiler: not started', 400);
    if (outcome !== 'done')
      return failed(`Fail to ${enable === 'y' ? 'start' : 'stop'} the heap profiler`, outcome.failure);
    if (enable === 'y') return textResponse('Starting heap profiler');
    const where = `data written to ${server.profilePath}. See ${MANUAL} for details.`;
    return textResponse(`Heap profiler stopped and ${where}`);
  },
});

export const HEAP_DUMP = endpoint({
  path: '/heap_dump',
  help: 'Profile of the heaps as they are, for pprof; threads stand still for it, one after the other',
  async handle({ server }, _parameters, { isHead }) {
    // Threads do not stand still for a body that nobody gets.
    const body = isHead ? new Uint8Array() : await server.heapDump();
    if (body === undefined) return textResponse('another heap dump is under way\n', 503);
    return {
      status: 200,
      contentType: BYTES,
      headers: { 'content-disposition': 'attachment; filename="heap.pb.gz"' },
      body,
    };
  },
});

/** Undefined for a query with more than its one parameter. */
async function order(
  commands: ServerCommands,
  kind: ProfilerKind,
  enable: 'y' | 'n',
  query: AdminQuery,
): Promise<ProfilerOutcome | undefined> {
  if (query.pairs.length !== 1) return undefined;
  return await (enable === 'y' ? commands.startProfiler(kind) : commands.stopProfiler(kind));
}

function failed(what: string, why: string): AdminResponse {
  return textResponse(`${what}: ${why}\n`, 500);
}
