// Route tables from files, in the real program: what is moved over them is what the next request of every connection goes by, and
// listeners know nothing of it.

import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const ROUTES = 'type.googleapis.com/envoy.config.route.v3.RouteConfiguration';
const ANY_PORT = socketAddress('127.0.0.1', 0);
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

class RoutesFile {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'weir-routes-'));
  readonly path = path.join(this.folder, 'routes.json');

  constructor(t: TestContext) {
    t.after(() => rmSync(this.folder, { recursive: true }));
  }

  write(version: string, ...resources: readonly JsonObject[]): void {
    writeFileSync(`${this.path}.next`, JSON.stringify({ version_info: version, resources }));
    renameSync(`${this.path}.next`, this.path);
  }

  rds(name = 'table'): JsonObject {
    return { config_source: { path_config_source: { path: this.path } }, route_config_name: name };
  }

  bootstrap(listeners: readonly JsonObject[], fields: JsonObject = {}): string {
    return JSON.stringify({
      node: { id: 'me', cluster: 'us' },
      admin: { address: ANY_PORT },
      static_resources: { listeners },
      ...fields,
    });
  }
}

/** Answers with a text. */
function saying(text: string, table: JsonObject = {}, host: JsonObject = {}): JsonObject {
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: text } } }];
  return { '@type': ROUTES, name: 'table', virtual_hosts: [{ name: 'v', domains: ['*'], routes, ...host }], ...table };
}

function listener(files: RoutesFile, name = 'in', manager: JsonObject = {}): JsonObject {
  return listenerWith([httpFilter({ route_config: null, rds: files.rds(), ...manager })], { name, address: ANY_PORT });
}

async function client(weir: WeirProcess, name = 'in'): Promise<WireClient> {
  return new WireClient((await weir.listeners()).get(name)!.port);
}

async function ask(from: WireClient): Promise<string> {
  const { status, body } = await from.write(GET).response();
  return `${status} ${body}`;
}

async function answerOf(weir: WeirProcess, name = 'in'): Promise<string> {
  const asking = await client(weir, name);
  const answer = await ask(asking);
  asking.close();
  return answer;
}

const rdsStat = (weir: WeirProcess, name: string): Promise<number | undefined> =>
  weir.stat(`http.web.rds.table.${name}`);

async function dumped(weir: WeirProcess): Promise<readonly Record<string, never>[]> {
  const text = await weir.admin('/config_dump?resource=dynamic_route_configs').catch(() => '{}');
  return (JSON.parse(text) as { configs?: Record<string, never>[] }).configs ?? [];
}

describe('route tables from files', () => {
  it('are there when the proxy is live, change for connections that stay, and are listed', async (t) => {
    const files = new RoutesFile(t);
    files.write('1', saying('one'), saying('unasked', { name: 'other' }));
    const configYaml = files.bootstrap([listener(files, 'in', { stat_prefix: 'web' })]);
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    const staying = await client(weir);
    assert.equal(await ask(staying), '200 one');
    files.write('2', saying('two'));
    await untilEqual('200 two', () => ask(staying), 'the answer by the second table');
    staying.close();
    const [shown, ...others] = await dumped(weir);
    assert.deepEqual([shown!.version_info, shown!.client_status, others], ['2', 'ACKED', []]);
    const stats = ['update_attempt', 'update_success', 'config_reload', 'update_rejected', 'update_empty'];
    assert.deepEqual(await Promise.all(stats.map((name) => rdsStat(weir, name))), [2, 2, 2, 0, 0]);
    assert.ok((await rdsStat(weir, 'config_reload_time_ms'))! > 1e12);
    assert.match(await weir.admin('/stats?filter=rds'), /http\.web\.rds\.table\.version_text: "2"/);
    assert.equal(await weir.stat('listener_manager.listener_modified'), 0);
  });

  it('stay where the next one may not be, or is none', async (t) => {
    const files = new RoutesFile(t);
    files.write('1', saying('one'));
    await using weir = await startWeir({
      configYaml: files.bootstrap([listener(files, 'in', { stat_prefix: 'web' })]),
    });
    files.write('2', saying('two', {}, { domains: [] }));
    await untilEqual(1, () => rdsStat(weir, 'update_rejected'), 'rejections');
    assert.match(
      weir.output.stderr,
      /route configuration table: \S+routes\.json:1:\d+: resources\[0\]\.virtual_hosts\[0\]/,
    );
    assert.equal(await answerOf(weir), '200 one');
    const [shown] = (await dumped(weir)) as unknown as {
      version_info: string;
      client_status: string;
      error_state: { details: string; version_info: string };
    }[];
    assert.deepEqual(
      [shown!.version_info, shown!.client_status, shown!.error_state.version_info],
      ['1', 'NACKED', '2'],
    );
    assert.match(shown!.error_state.details, /virtual_hosts\[0\]/);
    files.write('3', saying('three', { name: 'another' }));
    await untilEqual(1, () => rdsStat(weir, 'update_empty'), 'updates without the table');
    assert.equal(await answerOf(weir), '200 one');
    files.write('4', saying('four'));
    await untilEqual('200 four', () => answerOf(weir), 'the answer by the last table');
    const [{ error_state, client_status }] = (await dumped(weir)) as unknown as [JsonObject];
    assert.deepEqual([error_state, client_status], [undefined, 'ACKED']);
  });

  it('may come later than the proxy: until then no request finds a route', async (t) => {
    const files = new RoutesFile(t);
    const access_log = [
      {
        name: 'stdout',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
          log_format: { text_format_source: { inline_string: 'flags %RESPONSE_FLAGS%\n' } },
        },
      },
    ];
    const configYaml = files.bootstrap([listener(files, 'in', { stat_prefix: 'web', access_log })]);
    await using weir = await startWeir({ configYaml });
    assert.equal(await answerOf(weir), '404 ');
    await untilEqual(true, async () => weir.output.stdout.includes('flags NR'), 'the log');
    files.write('1', saying('late'));
    await untilEqual('200 late', () => answerOf(weir), 'the answer');
  });

  it('are one for all connection managers that want them, each of which has its own filters hear what routes say', async (t) => {
    const files = new RoutesFile(t);
    const mutation = 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3';
    const http_filters = [
      { name: 'mine', typed_config: { '@type': `${mutation}.HeaderMutation` } },
      {
        name: 'router',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
      },
    ];
    const perRoute = (value: string): JsonObject => ({
      typed_per_filter_config: {
        mine: {
          '@type': `${mutation}.HeaderMutationPerRoute`,
          mutations: { response_mutations: [{ append: { header: { key: 'said', value } } }] },
        },
      },
    });
    files.write('1', saying('one', perRoute('first')));
    const listeners = [listener(files, 'plain'), listener(files, 'filtered', { http_filters })];
    await using weir = await startWeir({ configYaml: files.bootstrap(listeners) });
    assert.equal(await answerOf(weir, 'plain'), '200 one');
    const filtered = await client(weir, 'filtered');
    const said = async (): Promise<string | undefined> =>
      /said: (\w+)/.exec((await filtered.write(GET).response()).head)?.[1];
    assert.equal(await said(), 'first');
    files.write('2', saying('two', perRoute('second')));
    await untilEqual('second', said, 'what the second table says');
    filtered.close();
    assert.equal(await answerOf(weir, 'plain'), '200 two');
    assert.equal(await weir.stat('listener_manager.total_filter_chains_draining'), 0);
  });
});
