export type { ActiveCluster } from './cluster-manager/active-cluster.ts';
export type { ActiveHost } from './cluster-manager/active-host.ts';
export { History } from './history/history.ts';
export { HostTimes } from './history/host-times.ts';
export { TicketSecret } from './listener-manager/ticket-secret.ts';
export { engines } from './profiling/engines.ts';
export { type ProfileKind, type ProfilerAnswer, Profilers } from './profiling/profilers.ts';
export { type Contention, measureContention } from './server/contention.ts';
export type { MemoryReport } from './server/memory-report.ts';
export { loadPartsAtNeed } from './server/parts-at-need.ts';
export { FIRST_OF_ALL, type ParentLoad, type RestartFacts } from './server/restart-facts.ts';
export { Server, type ServerDependencies } from './server/server.ts';
export type { ServerState } from './server/server-state.ts';
export type { ClusterHost } from './stat-sinks/host-rotation.ts';
export type {
  CreateStatSink,
  EventStream,
  StatSinkContext,
  StatSinkCounts,
  StatSinkKinds,
} from './stat-sinks/stat-sink-kind.ts';
export type { SourceReport, TypeReport } from './subscription/source-report.ts';
export { renderTrace } from './tap/render-trace.ts';
export { WorkerPool } from './workers/worker-pool.ts';
