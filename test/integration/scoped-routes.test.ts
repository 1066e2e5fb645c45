// Scoped routes in the real program: which table a request goes by is said by its headers, and scopes and tables come from files and
// management servers while connections stay.

import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { bootstrap, CLUSTER, FORMS, LISTENER, ofForm, ROUTES } from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const SCOPES = 'config.route.v3.ScopedRouteConfiguration';
const ANY_PORT = socketAddress('127.0.0.1', 0);
const BUILDER = {
  fragments: [
    { header_value_extractor: { name: 'x-tenant', element_separator: ';', element: { separator: '=', key: 'id' } } },
  ],
};

function saying(name: string, text = name): JsonObject {
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: text } } }];
  return { name, virtual_hosts: [{ name: 'v', domains: ['*'], routes }] };
}

function scope(name: string, key: string, fields: JsonObject): JsonObject {
  return { name, key: { fragments: [{ string_key: key }] }, ...fields };
}

function listener(scoped: JsonObject, name = 'in'): JsonObject {
  const scoped_routes = { name: 'tenants', scope_key_builder: BUILDER, ...scoped };
  return listenerWith([httpFilter({ route_config: null, stat_prefix: 'web', scoped_routes })], {
    name,
    address: ANY_PORT,
  });
}

class Asking {
  readonly #client: WireClient;

  static async of(weir: WeirProcess, name = 'in'): Promise<Asking> {
    return new Asking(new WireClient((await weir.listeners()).get(name)!.port));
  }

  constructor(client: WireClient) {
    this.#client = client;
  }

  async as(tenant: string): Promise<string> {
    const line = tenant === '' ? '' : `x-tenant: a=b;id=${tenant}\r\n`;
    const { status, body } = await this.#client.write(`GET / HTTP/1.1\r\nhost: x\r\n${line}\r\n`).response();
    return `${status} ${body}`.trim();
  }

  close(): void {
    this.#client.close();
  }
}

const scopeStat = (weir: WeirProcess, name: string): Promise<number | undefined> =>
  weir.stat(`http.web.scoped_rds.tenants.${name}`);

interface DumpedScopes {
  readonly name: string;
  readonly version_info?: string;
  readonly client_status?: string;
  readonly scoped_route_configs: readonly { readonly name: string }[];
  readonly error_state?: { readonly details: string; readonly version_info: string };
}

async function dumped(weir: WeirProcess, field: string): Promise<readonly DumpedScopes[]> {
  const text = await weir.admin(`/config_dump?resource=${field}`).catch(() => '{}');
  return (JSON.parse(text) as { configs?: DumpedScopes[] }).configs ?? [];
}

function file(
  t: TestContext,
  name: string,
): { readonly path: string; write(version: string, ...all: JsonObject[]): void } {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-scopes-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const place = path.join(folder, name);
  return {
    path: place,
    write(version_info, ...resources) {
      writeFileSync(`${place}.next`, JSON.stringify({ version_info, resources }));
      renameSync(`${place}.next`, place);
    },
  };
}

describe('scoped routes in the configuration', () => {
  it('send each request by the table of its scope, and answer 404 where it has none', async () => {
    const scopes = [
      scope('first', 'one', { route_configuration: saying('table of one') }),
      scope('second', 'two', { route_configuration: saying('table of two') }),
    ];
    const listeners = [listener({ scoped_route_configurations_list: { scoped_route_configurations: scopes } })];
    const configYaml = JSON.stringify({ admin: { address: ANY_PORT }, static_resources: { listeners } });
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    const client = await Asking.of(weir);
    assert.equal(await client.as('one'), '200 table of one');
    assert.equal(await client.as('two'), '200 table of two');
    assert.equal(await client.as('three'), '404');
    assert.equal(await client.as(''), '404');
    assert.equal(await client.as('one'), '200 table of one');
    client.close();
    assert.equal(await weir.stat('http.web.no_route'), 2);
    const [shown] = await dumped(weir, 'inline_scoped_route_configs');
    assert.deepEqual(
      [shown!.name, shown!.scoped_route_configs.map(({ name }) => name)],
      ['tenants', ['first', 'second']],
    );
  });
});

describe('scoped routes from files', () => {
  it('change for connections that stay, are refused for themselves, and are listed', async (t) => {
    const [scopes, routes] = [file(t, 'scopes.json'), file(t, 'routes.json')];
    const typed = (type: string, resource: JsonObject): JsonObject => ({
      '@type': `type.googleapis.com/envoy.${type}`,
      ...resource,
    });
    const far = (name: string, key: string, route_configuration_name: string): JsonObject =>
      typed(SCOPES, scope(name, key, { route_configuration_name }));
    routes.write('1', typed(ROUTES, saying('a')), typed(ROUTES, saying('b')));
    scopes.write('1', far('first', 'one', 'a'), far('second', 'two', 'b'));
    const source = (from: { readonly path: string }): JsonObject => ({ path_config_source: { path: from.path } });
    const scoped = {
      scoped_rds: { scoped_rds_config_source: source(scopes) },
      rds_config_source: source(routes),
    };
    const configYaml = JSON.stringify({
      node: { id: 'me', cluster: 'us' },
      admin: { address: ANY_PORT },
      static_resources: { listeners: [listener(scoped)] },
    });
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    const client = await Asking.of(weir);
    assert.deepEqual([await client.as('one'), await client.as('two')], ['200 a', '200 b']);

    scopes.write('2', far('first', 'two', 'a'), far('second', 'one', 'b'));
    await untilEqual('200 b', () => client.as('one'), 'keys that were exchanged');
    assert.equal(await client.as('two'), '200 a');

    scopes.write('3', far('first', 'two', 'a'), far('third', 'two', 'b'), far('fourth', 'four', 'a'));
    await untilEqual('200 a', () => client.as('four'), 'what is good of a refused response');
    assert.equal(await client.as('two'), '200 a');
    assert.equal(await client.as('one'), '404');
    assert.equal(await scopeStat(weir, 'update_rejected'), 1);
    assert.match(weir.output.stderr, /scope third: has the key of scope "first"/);
    const [refused] = await dumped(weir, 'dynamic_scoped_route_configs');
    assert.deepEqual(
      [refused!.client_status, refused!.version_info, refused!.error_state!.version_info],
      ['NACKED', '3', '3'],
    );
    assert.deepEqual(refused!.scoped_route_configs.map(({ name }) => name).toSorted(), ['first', 'fourth']);

    routes.write('2', typed(ROUTES, saying('a', 'other')), typed(ROUTES, saying('b')));
    await untilEqual('200 other', () => client.as('four'), 'another table of the scope');
    client.close();
    assert.deepEqual([await scopeStat(weir, 'all_scopes'), await scopeStat(weir, 'config_reload')], [2, 3]);
    assert.equal(await weir.stat('listener_manager.listener_modified'), 0);
  });
});

describe('scoped routes from a management server', () => {
  for (const form of FORMS) {
    it(`come, change and go, with the tables that they name: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      const source = ofForm(form);
      const far = (name: string, key: string, table: string): JsonObject =>
        scope(name, key, { route_configuration_name: table });
      plane.set(CLUSTER, '1', []);
      plane.set(ROUTES, '1', [saying('a'), saying('b')]);
      plane.set(SCOPES, '1', [far('first', 'one', 'a')]);
      plane.set(LISTENER, '1', [
        listener({ scoped_rds: { scoped_rds_config_source: source }, rds_config_source: source }),
      ]);
      await using weir = await startWeir({ configYaml: bootstrap(form, [plane]), args: ['--concurrency', '2'] });
      const client = await Asking.of(weir);
      assert.deepEqual([await client.as('one'), await client.as('two')], ['200 a', '404']);
      assert.equal((await plane.answered(SCOPES, '1')).error_detail, null);

      plane.set(SCOPES, '2', [far('first', 'one', 'a'), far('second', 'two', 'b')]);
      await untilEqual('200 b', () => client.as('two'), 'another scope');
      // Traffic may be quicker than the answer, which is to be that to the last response.
      await plane.answered(SCOPES, '2');
      plane.set(SCOPES, '3', [far('second', 'two', 'b'), far('third', 'two', 'a')]);
      const { error_detail: refusal } = await plane.answered(SCOPES, '3');
      assert.match(refusal!.message, /scope third: has the key of scope "second"/);
      await untilEqual('404', () => client.as('one'), 'the end of a scope');
      assert.equal(await client.as('two'), '200 b');

      // The server ends in the middle, and comes back with another state of things.
      plane.endStreams();
      plane.set(SCOPES, '4', [far('first', 'one', 'b')]);
      await untilEqual('200 b', () => client.as('one'), 'what the next stream says');
      await untilEqual('404', () => client.as('two'), 'what the next stream does not say');
      client.close();
      assert.equal(await scopeStat(weir, 'all_scopes'), 1);
      assert.deepEqual(plane.violations, []);
    });
  }

  it('hold up their listener until scopes and tables are there, which is told', async (t) => {
    const form = FORMS[0]!;
    const plane = await ControlPlane.start(t);
    const source = ofForm(form);
    plane.set(CLUSTER, '1', []);
    plane.set(LISTENER, '1', []);
    await using weir = await startWeir({ configYaml: bootstrap(form, [plane]) });
    plane.set(LISTENER, '2', [
      listener({ scoped_rds: { scoped_rds_config_source: source }, rds_config_source: source }),
    ]);
    const waits = async (): Promise<boolean> =>
      (await weir.admin('/init_dump')).includes('ScopedRdsConfigSubscription init tenants');
    await untilEqual(true, waits, 'a listener that waits for its scopes');
    plane.set(SCOPES, '1', [scope('first', 'one', { route_configuration_name: 'a' })]);
    await plane.answered(SCOPES, '1');
    assert.equal(await waits(), true);
    plane.set(ROUTES, '1', [saying('a')]);
    await untilEqual(true, async () => (await weir.listeners()).has('in'), 'the listener');
    const client = await Asking.of(weir);
    assert.equal(await client.as('one'), '200 a');
    client.close();
  });
});
