// The demo's parts: free ports, upstreams with their tempers, and the bootstrap with the ports in use.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { describe, it } from 'node:test';
import { startDemo } from '../../../src/demo/index.ts';
import { findFreePort, listenNear } from '../../../src/demo/port.ts';
import { startUpstream, type UpstreamName } from '../../../src/demo/upstream.ts';

const HOST = '127.0.0.1';

interface Answer {
  readonly upstream: string;
  readonly latency_ms: number;
}

async function close(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}

async function occupy(): Promise<{ server: Server; port: number }> {
  const server = createServer();
  return { server, port: await listenNear(server, HOST, 0) };
}

describe('free ports', () => {
  it('are the wished one, or the next above a taken one', async () => {
    const { server, port } = await occupy();
    const next = await findFreePort(HOST, port, new Set());
    assert.ok(next > port);
    await close(server);
    assert.equal(await findFreePort(HOST, port, new Set()), port);
  });

  it('leave out ports that are promised to something else', async () => {
    const { server, port } = await occupy();
    const next = await findFreePort(HOST, port, new Set());
    assert.ok((await findFreePort(HOST, port, new Set([next]))) > next);
    await close(server);
  });

  it('are seen as taken when their holder shares them', async (t) => {
    if (process.platform !== 'linux') return t.skip('SO_REUSEPORT behaves so on Linux');
    const { server: probe, port } = await occupy();
    await close(probe);
    const server = createServer().listen({ host: HOST, port, reusePort: true });
    await once(server, 'listening');
    assert.notEqual(await findFreePort(HOST, port, new Set()), port);
    await close(server);
  });

  it('are refused for an address that is not of this machine', async () => {
    await assert.rejects(findFreePort('192.0.2.1', 10_000, new Set()), { code: 'EADDRNOTAVAIL' });
  });
});

describe('demo upstreams', () => {
  const answersOf = async (name: UpstreamName, count: number): Promise<[status: number, body: Answer][]> => {
    const { server, port } = await startUpstream(name, HOST, 0);
    try {
      const answers: [number, Answer][] = [];
      for (let request = 0; request < count; request += 1) {
        const response = await fetch(`http://${HOST}:${port}/some/path`, { method: 'POST', body: 'four' });
        answers.push([response.status, (await response.json()) as Answer]);
      }
      return answers;
    } finally {
      server.closeAllConnections();
      await close(server);
    }
  };

  it('tell who answered what', async () => {
    assert.deepEqual(await answersOf('fast', 1), [
      [200, { upstream: 'fast', request: 1, latency_ms: 1, method: 'POST', path: '/some/path', body_bytes: 4 }],
    ]);
  });

  it('vary in latency within their range', async () => {
    const latencies = (await answersOf('slow', 4)).map(([, body]) => body.latency_ms);
    assert.ok(
      latencies.every((latency) => latency >= 20 && latency <= 120),
      String(latencies),
    );
    assert.equal(new Set(latencies).size, latencies.length);
  });

  it('fail every fourth time when flaky', async () => {
    const statuses = (await answersOf('flaky', 8)).map(([status]) => status);
    assert.deepEqual(statuses, [200, 200, 200, 503, 200, 200, 200, 503]);
  });
});

describe('the demo', () => {
  it('fills in ports that work, twice at the same time', async (t) => {
    const demos = [await startDemo(), await startDemo()];
    t.after(() => Promise.all(demos.map((demo) => demo.close())));
    const answers = demos.map(async ({ configYaml }) => {
      const ports = [...configYaml.matchAll(/port_value: (\d+)/g)].map((match) => Number(match[1]));
      assert.equal(ports.length, 9);
      // Admin, two listeners, then the upstream of each cluster, then all three again.
      const upstreams = ports.slice(3, 6);
      assert.deepEqual(ports.slice(6), upstreams);
      const bodies = upstreams.map(async (port) => (await fetch(`http://${HOST}:${port}/`)).json());
      const names = (await Promise.all(bodies)).map((body) => (body as Answer).upstream);
      assert.deepEqual(names, ['fast', 'slow', 'flaky']);
      return upstreams;
    });
    const [first, second] = await Promise.all(answers);
    assert.equal(new Set([...first!, ...second!]).size, 6);
  });

  it('describes itself with three commands to try', async () => {
    const demo = await startDemo();
    const commands = demo.describe().match(/^ {2}curl .*$/gm) ?? [];
    assert.equal(commands.length, 3);
    await demo.close();
  });
});
