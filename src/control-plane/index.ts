export { Server, type ServerDependencies } from './server/server.ts';
export type { ServerState } from './server/server-state.ts';
export { WorkerPool } from './workers/worker-pool.ts';
