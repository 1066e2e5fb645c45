// What `npm start` runs without arguments: the bootstrap demo/bootstrap.yaml with free ports filled in, and the
// upstreams that it names. Main thread; the upstreams have a thread of their own, because main carries no traffic.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { PACKAGE_ROOT, threadEntry } from '../base/package-root.ts';
import { findFreePort } from './port.ts';
import type { UpstreamPorts, UpstreamWishes } from './upstream-worker.ts';

export interface Demo {
  /** The whole bootstrap as YAML, ready for --config-yaml. */
  readonly configYaml: string;
  /** Addresses and commands to try, some lines; true once the server is live. */
  describe(): string;
  /** Ends the upstreams; call it after the proxy has drained. */
  close(): Promise<void>;
}

const HOST = '127.0.0.1';

/** The ports that demo/bootstrap.yaml wishes for. */
const LISTENER_WISHES = { http: 10_000, tcp: 10_001, admin: 9901 } as const;
const UPSTREAM_WISHES = { fast: 10_011, slow: 10_012, flaky: 10_013 } as const;

type ListenerPorts = Record<keyof typeof LISTENER_WISHES, number>;

/** Starts the upstreams and picks free ports; rejects when no upstream can be started. */
export async function startDemo(): Promise<Demo> {
  const upstreams = startUpstreams();
  try {
    const [upstreamPorts, listenerPorts] = await Promise.all([upstreams.ports, pickListenerPorts()]);
    return {
      configYaml: fillPorts({ ...LISTENER_WISHES, ...UPSTREAM_WISHES }, { ...listenerPorts, ...upstreamPorts }),
      describe: () => describe(listenerPorts),
      close: upstreams.close,
    };
  } catch (error) {
    await upstreams.close();
    throw error;
  }
}

function startUpstreams(): { ports: Promise<UpstreamPorts>; close: () => Promise<void> } {
  const wishes: UpstreamWishes = { host: HOST, ports: UPSTREAM_WISHES };
  const worker = new Worker(threadEntry('demo/upstream-worker.ts'), { workerData: wishes, name: 'demo-upstreams' });
  const ports = once(worker, 'message').then(([message]) => {
    // From here on only the proxy keeps the process alive.
    worker.unref();
    return message as UpstreamPorts;
  });
  return {
    ports,
    close: async () => {
      await worker.terminate();
    },
  };
}

async function pickListenerPorts(): Promise<ListenerPorts> {
  const ports: ListenerPorts = { ...LISTENER_WISHES };
  const reserved = new Set<number>();
  for (const name of Object.keys(ports) as (keyof ListenerPorts)[]) {
    ports[name] = await findFreePort(HOST, LISTENER_WISHES[name], reserved);
    reserved.add(ports[name]);
  }
  return ports;
}

/** The demo bootstrap with every wished port replaced by the one in use. */
function fillPorts<Name extends string>(wishes: Record<Name, number>, ports: Record<Name, number>): string {
  const byWish = new Map((Object.keys(wishes) as Name[]).map((name) => [wishes[name], ports[name]]));
  const template = readFileSync(path.join(PACKAGE_ROOT, 'demo', 'bootstrap.yaml'), 'utf8');
  return template.replace(/(?<=\bport_value: )\d+/g, (wish) => String(byWish.get(Number(wish)) ?? wish));
}

function describe(ports: ListenerPorts): string {
  const http = `http://${HOST}:${ports.http}`;
  const tcp = `${HOST}:${ports.tcp}`;
  const admin = `http://${HOST}:${ports.admin}`;
  return `weir runs its demo:
  HTTP listener  ${http.padEnd(24)}/fast, /slow and /flaky go to one upstream each, / to all three in turn
  TCP listener   ${tcp.padEnd(24)}to the fast upstream
  admin          ${admin}
Try:
  curl -i ${http}/
  curl http://${tcp}/through-tcp
  curl -s ${admin}/stats
`;
}
