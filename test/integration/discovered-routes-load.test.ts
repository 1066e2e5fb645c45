// Route tables that come by discovery, seen from within: hundreds of them under traffic, what they are given and give back, and
// workers that are lost.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, mustLoad, socketAddress } from '../support/bootstrap.ts';
import { startEchoUpstream } from '../support/echo-upstream.ts';
import { untilEqual } from '../support/eventually.ts';
import { runServer } from '../support/running-server.ts';
import { WireClient } from '../support/wire.ts';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';
const ROUTES = 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration';
const LIMIT_TYPE = `${FILTERS}.local_ratelimit.v3.LocalRateLimit`;
const UPDATES = 300;
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

class Routes {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'weir-routes-'));
  readonly file = path.join(this.folder, 'routes.json');

  readonly #upstream: number;

  constructor(t: TestContext, upstream: number) {
    this.#upstream = upstream;
    t.after(() => rmSync(this.folder, { recursive: true }));
    this.write(0);
  }

  /** Each has stats of its own: of a virtual cluster, of a route, of a filter whom a route has count. */
  write(version: number): void {
    const routes = [
      {
        match: { prefix: '/' },
        route: { cluster: 'web' },
        response_headers_to_add: [{ header: { key: 'x-version', value: `${version}` } }],
        stat_prefix: `route${version}`,
        typed_per_filter_config: {
          limit: {
            '@type': LIMIT_TYPE,
            stat_prefix: `limit${version}`,
            token_bucket: { max_tokens: 1_000_000, fill_interval: '1s' },
            filter_enabled: { default_value: { numerator: 100 } },
          },
        },
      },
    ];
    const virtual_clusters = [{ name: `kind${version}`, headers: [{ name: ':method', exact_match: 'GET' }] }];
    const virtual_hosts = [{ name: `host${version}`, domains: ['*'], routes, virtual_clusters }];
    const table = { '@type': ROUTES, name: 'table', virtual_hosts };
    writeFileSync(`${this.file}.next`, JSON.stringify({ version_info: `${version}`, resources: [table] }));
    renameSync(`${this.file}.next`, this.file);
  }

  get bootstrap(): JsonObject {
    const config_source = { path_config_source: { path: this.file } };
    const http_filters = [
      { name: 'limit', typed_config: { '@type': LIMIT_TYPE, stat_prefix: 'none' } },
      { name: 'router', typed_config: { '@type': `${FILTERS}.router.v3.Router` } },
    ];
    const manager = { route_config: null, rds: { config_source, route_config_name: 'table' }, http_filters };
    const address = socketAddress('127.0.0.1', 0);
    const endpoint = { endpoint: { address: socketAddress('127.0.0.1', this.#upstream) } };
    const cluster = {
      name: 'web',
      load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: [endpoint] }] },
    };
    const listeners = [listenerWith([httpFilter(manager)], { name: 'in', address })];
    return { static_resources: { listeners, clusters: [cluster] } };
  }
}

/** Of the sockets that listen on a port. */
function listeningInodes(port: number): string[] {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readFileSync('/proc/self/net/tcp', 'utf8').split('\n').slice(1);
  const sockets = rows.map((row) => row.trim().split(/\s+/));
  return sockets.flatMap((socket) => (socket[1]?.endsWith(local) && socket[3] === '0A' ? socket[9]! : [])).sort();
}

async function overHttp1(client: WireClient): Promise<string> {
  const { head, status } = await client.write(GET).response();
  return status === 200 ? (/^x-version: (\d+)\r$/m.exec(head)?.[1] ?? 'no version') : `status ${status}`;
}

async function overHttp2(session: ClientHttp2Session): Promise<string> {
  const stream = session.request({ ':path': '/' });
  const [headers] = await once(stream, 'response');
  await once(stream.resume(), 'end');
  return headers[':status'] === 200 ? String(headers['x-version']) : `status ${headers[':status']}`;
}

describe('route tables that come one after the other', () => {
  it('fail no request, leave listeners and connections alone, and give back what they were given', async (t) => {
    await using upstream = await startEchoUpstream('web');
    const routes = new Routes(t, upstream.port);
    await using running = await runServer(routes.bootstrap, 2);
    const { server } = running;
    const port = running.portOf('in');
    const inodes = listeningInodes(port);
    assert.equal(inodes.length, 2);
    let isOver = false;
    let answers = 0;
    /** One request after the other over one connection; tables only ever become newer. */
    const goOn = async (ask: () => Promise<string>): Promise<void> => {
      for (let last = 0; !isOver; answers += 1) {
        const answer = await ask();
        const version = Number(answer);
        assert.ok(version >= last, `${answer} behind ${last}`);
        last = version;
      }
    };
    const plain = Array.from({ length: 4 }, () => new WireClient(port));
    const session = connect(`http://127.0.0.1:${port}`);
    t.after(() => session.destroy());
    const traffic = [
      ...plain.map((client) => goOn(() => overHttp1(client))),
      goOn(() => overHttp2(session)),
      goOn(() => overHttp2(session)),
    ];
    const failed = Promise.all(traffic);
    const stat = (name: string): number => server.stats.value(`http.ingress.rds.table.${name}`) ?? 0;
    const taken = (version: number): Promise<void> =>
      untilEqual(version + 1, () => stat('config_reload'), `table ${version}`);
    /** Requests have been counted by it, and nothing of the one before it is left. */
    const settled = async (version: number): Promise<number> => {
      const counted = (at: number): number =>
        server.stats.value(`vhost.host${at}.route.route${at}.upstream_rq_200`) ?? 0;
      await untilEqual(true, () => counted(version) > 0, 'requests counted by the table');
      await untilEqual(
        undefined,
        () => server.stats.value(`vhost.host${version - 1}.vcluster.kind${version - 1}.upstream_rq_total`),
        'the one before',
      );
      return server.memory.cells.usedCells;
    };
    const replace = async (version: number): Promise<void> => {
      routes.write(version);
      await Promise.race([taken(version), failed]);
    };
    await replace(1);
    const before = await settled(1);
    for (let version = 2; version < UPDATES; version += 1) await replace(version);
    const used = await settled(UPDATES - 1);
    isOver = true;
    await failed;
    const [client] = plain;
    assert.equal(await overHttp1(client!), `${UPDATES - 1}`);
    assert.ok(answers > UPDATES, `${answers} answers`);
    assert.deepEqual(listeningInodes(port), inodes);
    assert.equal(server.stats.value('http.ingress.downstream_cx_total'), plain.length + 1);
    assert.equal(server.stats.value('listener_manager.listener_in_place_updated'), 0);
    assert.deepEqual(
      running.log.filter((line) => line.includes('fault')),
      [],
    );
    assert.equal(used, before);
    assert.equal(server.stats.value(`limit${UPDATES - 2}.http_local_rate_limit.ok`), undefined);
    assert.ok(server.stats.value(`limit${UPDATES - 1}.http_local_rate_limit.ok`)! > 0);
    for (const each of plain) each.close();
  });

  it('are found in a worker that takes the place of a lost one', async (t) => {
    await using upstream = await startEchoUpstream('web');
    const routes = new Routes(t, upstream.port);
    await using running = await runServer(routes.bootstrap, 1);
    const { server, threads } = running;
    routes.write(7);
    await untilEqual(2, () => server.stats.value('http.ingress.rds.table.config_reload'), 'the second table');
    await threads[0]!.terminate();
    await untilEqual(1, () => server.stats.value('server.worker_restarts'), 'restarts');
    const answer = async (): Promise<string> => {
      const client = new WireClient(running.portOf('in'));
      const version = await overHttp1(client).catch(() => 'no answer');
      client.close();
      return version;
    };
    await untilEqual('7', answer, 'the table of then');
    routes.write(8);
    await untilEqual('8', answer, 'the next one');
  });

  it('are given back with the last listener that wants them', async (t) => {
    await using upstream = await startEchoUpstream('web');
    const routes = new Routes(t, upstream.port);
    await using running = await runServer(routes.bootstrap, 1);
    const { server } = running;
    const bootstrap = mustLoad(routes.bootstrap);
    await server.updates.apply({ ...bootstrap, listeners: [] });
    await server.listenerManager.whenNoneDrains();
    await untilEqual(undefined, () => server.stats.value('http.ingress.rds.table.update_attempt'), 'the subscription');
    const used = server.memory.cells.usedCells;
    for (let times = 0; times < 3; times += 1) {
      await server.updates.apply(bootstrap);
      assert.equal(server.stats.value('http.ingress.rds.table.config_reload'), 1);
      await server.updates.apply({ ...bootstrap, listeners: [] });
      await server.listenerManager.whenNoneDrains();
    }
    await untilEqual(used, () => server.memory.cells.usedCells, 'cells in use');
  });
});
