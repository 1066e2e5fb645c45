// The control plane with real worker threads, in this process: what no single worker can show.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { SYSTEM_CLOCK } from '../../src/base/clock.ts';
import { Server, WorkerPool } from '../../src/control-plane/index.ts';
import { Loggers, type LogRecord } from '../../src/log/index.ts';
import { httpFilter, type JsonObject, listenerWith, mustLoad, socketAddress } from '../support/bootstrap.ts';
import { type EchoUpstream, startEchoUpstream } from '../support/echo-upstream.ts';
import { untilEqual } from '../support/eventually.ts';
import { WireClient } from '../support/wire.ts';

const WORKERS = 3;
/** Only reached when a request never ends. */
const DRAIN_LIMIT_MS = 60_000;
const REQUEST = 'GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n';

function bootstrapFor(upstream: number): JsonObject {
  const endpoint = { endpoint: { address: socketAddress('127.0.0.1', upstream) } };
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
  const filter = httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } });
  return {
    static_resources: {
      listeners: [listenerWith([filter], { address: socketAddress('127.0.0.1', 0) })],
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

async function startServer(upstream: number, concurrency = WORKERS): Promise<RunningServer> {
  const threads: Worker[] = [];
  const collect = (worker: Worker): void => void threads.push(worker);
  process.on('worker', collect);
  const log: LogRecord[] = [];
  const loggers = new Loggers({
    levels: { default: 'info' },
    threadId: 0,
    sink: { write: (record) => void log.push(record) },
  });
  const workers = new WorkerPool({ concurrency, loggers, clock: SYSTEM_CLOCK });
  const bootstrap = mustLoad(bootstrapFor(upstream));
  const server = new Server({
    bootstrap,
    workers,
    loggers,
    clock: SYSTEM_CLOCK,
    revisionNumber: 0,
    unknownFields: 0,
    fileFlushIntervalMs: 10_000,
  });
  await server.start();
  const [listener] = [...server.listenerManager.listeners()];
  const address = listener!.addresses[0]!;
  assert.equal(address.kind, 'ip');
  return {
    server,
    port: address.kind === 'ip' ? address.port : 0,
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
    // A message that breaks the worker's own invariants: thrown far from any connection, so nothing contains it.
    const victim = threads[1]!;
    // Not `once` of node:events: that rejects with the very error that this is about.
    const ended = new Promise((resolve) => victim.once('exit', resolve));
    victim.postMessage({ type: 'clusters', updated: null, removed: [] });
    await ended;
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
    assert.match(log.find((record) => record.level === 'error')!.message, /worker 1 ended unexpectedly.*TypeError/s);
    // What the lost worker had open is open no more.
    for (const client of clients) client.socket.destroy();
    await untilStat(server, 'http.ingress.downstream_cx_active', 0);
    await untilStat(server, 'cluster.web.upstream_rq_active', 0);
    const [cluster] = server.clusterManager.clusters();
    assert.equal([...cluster!.hosts()][0]!.stats.rq_active, 0);
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
