// The control plane with real worker threads, in this process: what no single worker can show.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, createServer as createNetServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { SYSTEM_CLOCK } from '../../src/base/clock.ts';
import { errorMessage } from '../../src/base/errors.ts';
import { FaultBoundary } from '../../src/base/fault-boundary.ts';
import { Server, WorkerPool } from '../../src/control-plane/index.ts';
import { Loggers, type LogRecord } from '../../src/log/index.ts';
import { httpFilter, type JsonObject, listenerWith, mustLoad, socketAddress } from '../support/bootstrap.ts';
import { limitDescriptors } from '../support/descriptor-limit.ts';
import { type EchoUpstream, startEchoUpstream } from '../support/echo-upstream.ts';
import { eventually, untilEqual } from '../support/eventually.ts';
import { WireClient } from '../support/wire.ts';

const WORKERS = 3;
/** Only reached when a request never ends. */
const DRAIN_LIMIT_MS = 60_000;
const REQUEST = 'GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n';

function bootstrapFor(upstream: number, address: JsonObject): JsonObject {
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', upstream) } };
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
  const filter = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  return {
    static_resources: {
      listeners: [listenerWith([filter], { address })],
      clusters: [{ name: 'web', load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] } }],
    },
  };
}

interface RunningServer extends AsyncDisposable {
  readonly server: Server;
  readonly port: number;
  /** The data-plane threads in the order of their start. */
  readonly threads: readonly Worker[];
  readonly log: readonly LogRecord[];
}

async function startServer(
  upstream: number,
  concurrency = WORKERS,
  address = socketAddress('127.0.0.1', 0),
): Promise<RunningServer> {
  const threads: Worker[] = [];
  const collect = (worker: Worker): void => void threads.push(worker);
  process.on('worker', collect);
  const log: LogRecord[] = [];
  const loggers = new Loggers({
    levels: { default: 'info' },
    threadId: 0,
    sink: { write: (record) => void log.push(record) },
  });
  const faults = new FaultBoundary((where, error) => loggers.get('main').error(`${where}: ${errorMessage(error)}`));
  const workers = new WorkerPool({ concurrency, loggers, clock: SYSTEM_CLOCK, faults });
  const bootstrap = mustLoad(bootstrapFor(upstream, address));
  const server = new Server({
    bootstrap,
    parts: {},
    workers,
    loggers,
    clock: SYSTEM_CLOCK,
    faults,
    revisionNumber: 0,
    versionText: '',
    unknownFields: 0,
    drainMs: 1000,
    drainStrategy: 'gradual',
    fileFlushIntervalMs: 10_000,
  });
  await server.start();
  const [listener] = [...server.listenerManager.listeners()];
  const bound = listener!.addresses[0]!;
  return {
    server,
    port: bound.kind === 'ip' ? bound.port : 0,
    threads,
    log,
    async [Symbol.asyncDispose]() {
      process.off('worker', collect);
      await server.stop(DRAIN_LIMIT_MS);
    },
  };
}

/** Resolves when the stat has the value; stats of workers have no event of their own. */
async function untilStat(server: Server, name: string, value: number): Promise<void> {
  await untilEqual(value, () => server.stats.value(name), name);
}

async function connected(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

describe('a server with several workers', () => {
  let upstream: EchoUpstream;

  before(async () => {
    upstream = await startEchoUpstream('web');
  });
  after(() => upstream[Symbol.asyncDispose]());

  it('counts every request exactly, over all workers', async () => {
    await using running = await startServer(upstream.port);
    const { server, port } = running;
    const before = upstream.requests;
    const perClient = 40;
    const clients = Array.from({ length: 24 }, () => new WireClient(port));
    await Promise.all(
      clients.map(async (client) => {
        for (let request = 0; request < perClient; request += 1) {
          client.write(REQUEST);
          assert.match(await client.until('"bodyBytes":0}'), /^HTTP\/1\.1 200 /);
        }
        client.socket.end();
      }),
    );
    const total = clients.length * perClient;
    await untilStat(server, 'http.ingress.downstream_cx_destroy', clients.length);
    assert.equal(upstream.requests - before, total);
    // Response codes are met at run time: their cells are asked of the main thread while the first are counted.
    await untilStat(server, 'cluster.web.upstream_rq_200', total);
    for (const counter of [
      'http.ingress.downstream_rq_total',
      'http.ingress.downstream_rq_2xx',
      'cluster.web.upstream_rq_total',
      'cluster.web.upstream_rq_2xx',
      'cluster.web.upstream_rq_completed',
    ]) {
      await untilStat(server, counter, total);
    }
    const [cluster] = server.clusterManager.clusters();
    const [host] = cluster!.hosts();
    assert.deepEqual([host!.stats.rq_total, host!.stats.rq_success, host!.stats.rq_active], [total, total, 0]);
    for (const gauge of [
      'http.ingress.downstream_cx_active',
      'http.ingress.downstream_rq_active',
      'cluster.web.upstream_rq_active',
    ]) {
      await untilStat(server, gauge, 0);
    }
  });

  it('shares its port out among all workers', async () => {
    await using running = await startServer(upstream.port);
    const sockets = await Promise.all(Array.from({ length: 60 }, () => connected(running.port)));
    await untilStat(running.server, 'listener.127.0.0.1_0.downstream_cx_active', 60);
    for (const socket of sockets) socket.destroy();
    await untilStat(running.server, 'listener.127.0.0.1_0.downstream_cx_active', 0);
  });

  it('survives a worker that crashes under load: the others serve on, another takes its place', async () => {
    await using running = await startServer(upstream.port);
    const { server, port, threads, log } = running;
    // Connections spread over the workers, each busy with one request after the other.
    const clients = Array.from({ length: 30 }, () => new WireClient(port));
    let isOver = false;
    const outcomes = clients.map(async (client) => {
      try {
        while (!isOver) {
          client.write(REQUEST);
          assert.match(await client.until('"bodyBytes":0}'), /^HTTP\/1\.1 200 /);
        }
        return 'served';
      } catch {
        return client.isEnded ? 'cut off' : 'wrong answer';
      }
    });
    await untilStat(server, 'http.ingress.downstream_cx_active', clients.length);
    await threads[1]!.terminate();
    await untilStat(server, 'server.worker_restarts', 1);
    // The new worker accepts on the same port again: with the accept queue of a dead one, some would be refused.
    for (let attempt = 0; attempt < 30; attempt += 1) {
      const client = new WireClient(port);
      client.write(REQUEST);
      assert.match(await client.until('"bodyBytes":0}'), /^HTTP\/1\.1 200 /);
      client.socket.destroy();
    }
    isOver = true;
    const results = await Promise.all(outcomes);
    const count = (outcome: string): number => results.filter((result) => result === outcome).length;
    assert.equal(count('wrong answer'), 0);
    assert.ok(count('served') > 0, 'connections of the other workers go on');
    assert.ok(count('cut off') > 0, 'the crash was that of a worker with connections');
    assert.equal(threads.length, WORKERS + 1);
    assert.match(log.find((record) => record.level === 'error')!.message, /worker 1 ended unexpectedly.*exit code 1/);
    // What the lost worker had open is open no more.
    for (const client of clients) client.socket.destroy();
    await untilStat(server, 'http.ingress.downstream_cx_active', 0);
    await untilStat(server, 'cluster.web.upstream_rq_active', 0);
    const [cluster] = server.clusterManager.clusters();
    assert.equal([...cluster!.hosts()][0]!.stats.rq_active, 0);
  });

  it('opens a pipe again whose path a crashed worker has left behind', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-server-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const pipe = path.join(folder, 'listener');
    await using running = await startServer(upstream.port, 1, { pipe: { path: pipe } });
    const { server, threads } = running;
    const leftBehind = path.join(folder, 'left-behind');
    await deadSocket(leftBehind);
    threads[0]!.once('exit', () => renameSync(leftBehind, pipe));
    await threads[0]!.terminate();
    await untilStat(server, 'server.worker_restarts', 1);
    await untilEqual(true, () => isAccepting(pipe), 'the new worker accepts');
  });

  it('starts a crashed worker again as soon as there are descriptors for it', async (t) => {
    await using running = await startServer(upstream.port);
    const { server, threads, log } = running;
    const former = limitDescriptors(process.pid, 3);
    t.after(() => limitDescriptors(process.pid, former));
    await threads[1]!.terminate();
    const failures = (): number => log.filter(({ message }) => message.includes('EMFILE')).length;
    await eventually(() => failures() === 2, 'two attempts that fail');
    limitDescriptors(process.pid, former);
    await untilStat(server, 'server.worker_restarts', 1);
  });

  it('survives a message that a worker cannot work on', async () => {
    await using running = await startServer(upstream.port);
    const { server, port, threads, log } = running;
    threads[1]!.postMessage({ type: 'cluster', generation: 1, cluster: null });
    await untilStat(server, 'server.contained_faults', 1);
    const fault = (): LogRecord | undefined => log.find((record) => record.level === 'error');
    await eventually(() => fault() !== undefined, 'a line of it');
    assert.match(fault()!.message, /^fault in message 'cluster': TypeError/);
    const client = new WireClient(port);
    client.write(REQUEST);
    assert.match(await client.until('"bodyBytes":0}'), /^HTTP\/1\.1 200 /);
    client.socket.destroy();
    assert.equal(threads.length, WORKERS);
  });

  it('lets running requests finish when it is stopped, and cuts idle connections', async () => {
    await using slow = await startSlowUpstream();
    // One worker: several learn of the end at different moments, so one's idle connection says nothing of another's busy one.
    const running = await startServer(slow.port, 1);
    const busy = new WireClient(running.port);
    const idle = await connected(running.port);
    busy.write(REQUEST);
    await slow.asked;
    const idleClosed = once(idle, 'close');
    const stopped = running[Symbol.asyncDispose]();
    await idleClosed;
    slow.answer();
    const response = await busy.until('done');
    assert.match(response, /^HTTP\/1\.1 200 /);
    assert.match(response, /\r\nconnection: close\r\n/i);
    await stopped;
  });
});

/** Makes the file of a socket that nobody listens at. */
async function deadSocket(path: string): Promise<void> {
  const server = createNetServer().listen(`${path}.alive`);
  await once(server, 'listening');
  renameSync(`${path}.alive`, path);
  server.close();
  await once(server, 'close');
}

/** Whether a worker serves on the path, as it does not while nobody listens there. */
async function isAccepting(path: string): Promise<boolean> {
  const client = connect(path);
  const outcome = new Promise<boolean>((resolve) => {
    client.on('error', () => resolve(false));
    client.once('data', () => resolve(true));
    client.once('close', () => resolve(false));
  });
  client.write(REQUEST);
  const isServed = await outcome;
  client.destroy();
  return isServed;
}

interface SlowUpstream extends AsyncDisposable {
  readonly port: number;
  readonly asked: Promise<unknown>;
  answer(): void;
}

/** Answers its only request when told to. */
async function startSlowUpstream(): Promise<SlowUpstream> {
  const asked = Promise.withResolvers<() => void>();
  const server = createServer((_request, response) => asked.resolve(() => response.end('done')));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { port: number }).port,
    asked: asked.promise,
    answer: () => void asked.promise.then((respond) => respond()),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
