// What those who report know of their worker: calls go over the same clusters as requests do.

import type { UpstreamCalls } from '../router/upstream-call.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { ReportContext } from './tracer.ts';

export function reportContext(context: WorkerContext, calls: UpstreamCalls): ReportContext {
  return {
    clock: context.clock,
    random: context.random,
    runtime: context.runtime,
    counter(name) {
      const end = name.lastIndexOf('.') + 1;
      return context.stats.dynamicCounter(name.slice(0, end), name.slice(end));
    },
    hasCluster: (name) => calls.clusterNamed(name) !== null,
    call(request, receiver) {
      calls.begin(request, receiver);
    },
    stream: (request, receiver) => calls.stream(request, receiver),
  };
}
