// One demo upstream: a real HTTP server on loopback whose answers tell who answered and how long it took.

import type { Server } from 'node:http';
import { createServer } from '../base/node-http.ts';
import { listenNear } from './port.ts';

export type UpstreamName = 'fast' | 'slow' | 'flaky';

interface Behaviour {
  readonly minLatencyMs: number;
  readonly maxLatencyMs: number;
  /** Every n-th request is answered with 503; 0 for none. */
  readonly failEvery: number;
}

export const BEHAVIOURS: Readonly<Record<UpstreamName, Behaviour>> = {
  fast: { minLatencyMs: 1, maxLatencyMs: 1, failEvery: 0 },
  slow: { minLatencyMs: 20, maxLatencyMs: 120, failEvery: 0 },
  flaky: { minLatencyMs: 5, maxLatencyMs: 15, failEvery: 4 },
};

/** Steps of the golden ratio spread the latencies evenly over their range, the same in every run. */
const GOLDEN_STEP = 0.618034;

function latencyMs(behaviour: Behaviour, requestNumber: number): number {
  const fraction = (requestNumber * GOLDEN_STEP) % 1;
  return Math.round(behaviour.minLatencyMs + fraction * (behaviour.maxLatencyMs - behaviour.minLatencyMs));
}

export interface RunningUpstream {
  readonly port: number;
  readonly server: Server;
}

/** Starts the upstream on `wishedPort`, or on the next free one. */
export async function startUpstream(name: UpstreamName, host: string, wishedPort: number): Promise<RunningUpstream> {
  const behaviour = BEHAVIOURS[name];
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    const number = requests;
    const waitMs = latencyMs(behaviour, number);
    const status = behaviour.failEvery > 0 && number % behaviour.failEvery === 0 ? 503 : 200;
    let bodyBytes = 0;
    request.on('data', (chunk: Buffer) => {
      bodyBytes += chunk.length;
    });
    request.on('end', () => {
      const answer = {
        upstream: name,
        request: number,
        latency_ms: waitMs,
        method: request.method,
        path: request.url,
        body_bytes: bodyBytes,
      };
      const text = `${JSON.stringify(answer)}\n`;
      setTimeout(() => {
        response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
        response.end(text);
      }, waitMs);
    });
  });
  // A client such as `nc` says that it has no more to send as soon as its request is out, and still wants the answer.
  Object.assign(server, { httpAllowHalfOpen: true });
  return { port: await listenNear(server, host, wishedPort), server };
}
