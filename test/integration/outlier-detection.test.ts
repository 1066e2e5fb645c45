// Outlier detection in the real program, with two workers and real upstreams: who gets requests, and what an operator sees.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const ANY_PORT = socketAddress('127.0.0.1', 0);
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
const STAT = 'cluster.web.outlier_detection.';

class Upstream implements AsyncDisposable {
  isBroken = false;
  requests = 0;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (_request, response) => {
      this.requests += 1;
      response.statusCode = this.isBroken ? 500 : 200;
      response.end();
    });
  }

  static async start(): Promise<Upstream> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Upstream(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

function bootstrap(upstreams: readonly Upstream[], detection: JsonObject, fields: JsonObject = {}): string {
  const lb_endpoints = upstreams.map(({ port }) => ({ endpoint: { address: socketAddress('127.0.0.1', port) } }));
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
  return JSON.stringify({
    admin: { address: ANY_PORT },
    static_resources: {
      listeners: [
        listenerWith([httpFilter({ route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] } })], {
          name: 'main',
          address: ANY_PORT,
        }),
      ],
      clusters: [
        {
          name: 'web',
          load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints }] },
          outlier_detection: detection,
        },
      ],
    },
    ...fields,
  });
}

/** A client that brings each request over a connection of its own, so that both workers get some. */
async function requester(weir: WeirProcess): Promise<() => Promise<number>> {
  const { port } = (await weir.listeners()).get('main')!;
  return async () => {
    const client = new WireClient(port);
    const { status } = await client.write(GET).response();
    client.close();
    return status;
  };
}

describe('a host that answers with errors', () => {
  it('is left alone after a few of them, and clients see no more', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-outliers-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const eventLog = path.join(folder, 'events.json');
    await using first = await Upstream.start();
    await using bad = await Upstream.start();
    await using third = await Upstream.start();
    bad.isBroken = true;
    const configYaml = bootstrap(
      [first, bad, third],
      { consecutive_5xx: 4, interval: '0.05s', base_ejection_time: '3600s', max_ejection_time: '3600s' },
      { cluster_manager: { outlier_detection: { event_log_path: eventLog } } },
    );
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    const request = await requester(weir);
    await untilEqual(
      true,
      async () => {
        await request();
        return bad.requests >= 4;
      },
      'errors',
    );
    await weir.untilStat(`${STAT}ejections_active`, 1);
    await weir.untilStat('cluster.web.membership_healthy', 2);
    // Both workers have new lists once neither of them brings the host anything.
    let before = -1;
    await untilEqual(
      true,
      async () => {
        before = bad.requests;
        for (let count = 0; count < 20; count += 1) await request();
        return bad.requests === before;
      },
      'new lists',
    );
    const statuses = new Set<number>();
    for (let count = 0; count < 40; count += 1) statuses.add(await request());
    assert.deepEqual([...statuses], [200]);
    assert.equal(bad.requests, before);

    assert.equal(await weir.stat(`${STAT}ejections_enforced_consecutive_5xx`), 1);
    const clusters = await weir.admin('/clusters');
    assert.match(clusters, /^web::outlier::success_rate_average::-1$/m);
    assert.match(clusters, new RegExp(`^web::127\\.0\\.0\\.1:${bad.port}::health_flags::/failed_outlier_check$`, 'm'));
    assert.match(clusters, new RegExp(`^web::127\\.0\\.0\\.1:${first.port}::health_flags::healthy$`, 'm'));
    const reason = /::last_ejection::by consecutive-5xx at \d{4}-[-\d:T.]+Z, number 1$/m;
    assert.match(clusters, reason);
    assert.equal(clusters.split('::last_ejection::').length, 2, 'of the one host alone');
    const json = JSON.parse(await weir.admin('/clusters?format=json')) as {
      cluster_statuses: { host_statuses: { health_status: JsonObject }[] }[];
    };
    assert.deepEqual(
      json.cluster_statuses[0]!.host_statuses.map(({ health_status }) => health_status.failed_outlier_check),
      [undefined, true, undefined],
    );
    const lines = (): string[] => readFileSync(eventLog, 'utf8').split('\n').slice(0, -1);
    await untilEqual(1, () => lines().length, 'lines of events');
    const { type, cluster_name, upstream_url } = JSON.parse(lines()[0]!) as Record<string, unknown>;
    assert.deepEqual([type, cluster_name, upstream_url], ['CONSECUTIVE_5XX', 'web', `127.0.0.1:${bad.port}`]);
  });

  it('comes back after its time, and stays when it has recovered', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-outliers-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const eventLog = path.join(folder, 'events.json');
    await using good = await Upstream.start();
    await using bad = await Upstream.start();
    bad.isBroken = true;
    const configYaml = bootstrap(
      [good, bad],
      { consecutive_5xx: 2, interval: '0.05s', base_ejection_time: '0.3s', max_ejection_percent: 50 },
      { cluster_manager: { outlier_detection: { event_log_path: eventLog } } },
    );
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    const request = await requester(weir);
    await untilEqual(
      true,
      async () => {
        await request();
        return (await weir.stat(`${STAT}ejections_enforced_total`))! > 0;
      },
      'an ejection',
    );
    bad.isBroken = false;
    await weir.untilStat(`${STAT}ejections_active`, 0);
    await weir.untilStat('cluster.web.membership_healthy', 2);
    const before = bad.requests;
    await untilEqual(
      true,
      async () => {
        assert.equal(await request(), 200);
        return bad.requests > before + 2;
      },
      'requests again',
    );
    await untilEqual(0, () => weir.stat(`${STAT}ejections_active`), 'nobody ejected');
    const lines = (): string[] => readFileSync(eventLog, 'utf8').split('\n').slice(0, -1);
    await untilEqual(true, () => lines().length >= 2, 'an event of its return');
    const [out, back] = lines().map((line) => JSON.parse(line) as { action: string; timestamp: string });
    assert.deepEqual([out!.action, back!.action], ['EJECT', 'UNEJECT']);
    const awayMs = Date.parse(back!.timestamp) - Date.parse(out!.timestamp);
    // Times of day, in whole milliseconds.
    assert.ok(awayMs >= 299, `${awayMs} ms`);
  });
});
