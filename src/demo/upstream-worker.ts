// Thread of the demo's upstreams, so that their work never delays the control plane. Gets the wished port of each
// upstream as workerData, answers once with the ports in use, and lives until it is terminated.

import { parentPort, workerData } from 'node:worker_threads';
import { startUpstream, type UpstreamName } from './upstream.ts';

export interface UpstreamWishes {
  readonly host: string;
  readonly ports: Readonly<Record<UpstreamName, number>>;
}

/** Port in use by upstream. */
export type UpstreamPorts = Record<UpstreamName, number>;

const { host, ports: wishes } = workerData as UpstreamWishes;
const ports = { ...wishes };
// One after the other: two that slide upwards must not compete for the same next port.
for (const name of Object.keys(wishes) as UpstreamName[]) {
  ports[name] = (await startUpstream(name, host, wishes[name])).port;
}
parentPort?.postMessage(ports satisfies UpstreamPorts);
