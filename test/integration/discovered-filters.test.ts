// HTTP filters whose configurations come by discovery, in the real program: what is moved over them holds for the next request of every
// connection, and listeners know nothing of it.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it } from 'node:test';
import {
  clusterNamed,
  httpFilter,
  type JsonObject,
  listenerWith,
  ROUTER,
  socketAddress,
} from '../support/bootstrap.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { FORMS, ofForm, bootstrap as planeBootstrap, serve } from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import {
  dumpedFilters as dumped,
  EXTENSION,
  FiltersFile,
  filterResource as resource,
} from '../support/filters-file.ts';
import { runWeir, startWeir, type WeirProcess } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const TYPES = 'type.googleapis.com/envoy.extensions.filters.http';
const MUTATION = `${TYPES}.header_mutation.v3.HeaderMutation`;
const FAULT = `${TYPES}.fault.v3.HTTPFault`;
const ANY_PORT = socketAddress('127.0.0.1', 0);
const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

/** A response says this of itself. */
function saying(text: string): JsonObject {
  const append = { header: { key: 'by', value: text }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' };
  return { '@type': MUTATION, mutations: { response_mutations: [{ append }] } };
}

/** All requests are answered so. */
function failing(http_status: number): JsonObject {
  return { '@type': FAULT, abort: { http_status, percentage: { numerator: 100 } } };
}

/** @param fields of the discovery. */
function discovered(config_source: JsonObject, fields: JsonObject = {}): JsonObject {
  return { name: 'late', config_discovery: { config_source, type_urls: [MUTATION, FAULT], ...fields } };
}

const DIRECT: JsonObject = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'ok' } } };

function listener(filter: JsonObject, route = DIRECT, manager: JsonObject = {}): JsonObject {
  const route_config = { virtual_hosts: [{ name: 'v', domains: ['*'], routes: [route] }] };
  const http = httpFilter({ route_config, http_filters: [filter, ROUTER], ...manager });
  return listenerWith([http], { name: 'in', address: ANY_PORT });
}

function bootstrapWith(listeners: readonly JsonObject[], clusters: readonly JsonObject[] = []): string {
  return JSON.stringify({
    node: { id: 'me', cluster: 'us' },
    admin: { address: ANY_PORT },
    static_resources: { listeners, clusters },
  });
}

async function clientOf(weir: WeirProcess): Promise<WireClient> {
  return new WireClient((await weir.listeners()).get('in')!.port);
}

/** Status, and what the response says of itself. */
async function ask(client: WireClient): Promise<string> {
  const { status, head } = await client.write(GET).response();
  return `${status} ${/^by: (.*)\r$/m.exec(head)?.[1] ?? ''}`;
}

const stat = (weir: WeirProcess, name: string): Promise<number | undefined> =>
  weir.stat(`extension_config_discovery.http_filter.late.${name}`);

describe('filters from files', () => {
  it('are there when the proxy is live, change for connections that stay, and are listed', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(saying('one')));
    const configYaml = bootstrapWith([listener(discovered(file.source()))]);
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    const client = await clientOf(weir);
    assert.equal(await ask(client), '200 one');
    file.write('2', resource(saying('two')));
    await untilEqual('200 two', () => ask(client), 'what the second configuration says');
    file.write('3', resource(failing(418)));
    await untilEqual('418 ', () => ask(client), 'what another kind of filter says');
    const [shown, ...others] = await dumped(weir);
    assert.deepEqual([shown!.version_info, shown!.client_status, others], ['3', 'ACKED', []]);
    assert.equal(shown!.ecds_filter!.name, 'late');
    const names = ['config_reload', 'config_fail', 'config_conflict', 'update_success', 'update_rejected'];
    assert.deepEqual(await Promise.all(names.map((name) => stat(weir, name))), [3, 0, 0, 3, 0]);
    assert.equal(await weir.stat('listener_manager.listener_modified'), 0);
    assert.equal(await weir.stat('http.http.fault.aborts_injected'), undefined);
    client.close();
  });

  it('stay where the next one may not be, and say why', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(saying('one')));
    await using weir = await startWeir({ configYaml: bootstrapWith([listener(discovered(file.source()))]) });
    const client = await clientOf(weir);
    const bad: readonly (readonly [RegExp, ...JsonObject[]])[] = [
      [/http_status/, resource(failing(42))],
      [/"\S+Cors" is not among type_urls/, resource({ '@type': `${TYPES}.cors.v3.Cors` })],
      [/is not supported by this build/, resource(ROUTER.typed_config as JsonObject)],
      [/typed_config: must be set/, { name: 'late' }],
      [/it holds 2 of this name/, resource(saying('a')), resource(saying('b'))],
    ];
    for (const [index, [reason, ...resources]] of bad.entries()) {
      file.write(`bad-${index}`, ...resources);
      await untilEqual(index + 1, () => stat(weir, 'config_fail'), `failures, behind ${reason}`);
      const [shown] = await dumped(weir);
      assert.deepEqual([shown!.version_info, shown!.client_status], ['1', 'NACKED']);
      assert.match(shown!.error_state!.details, reason);
      assert.equal(await ask(client), '200 one');
    }
    assert.equal(await stat(weir, 'update_rejected'), bad.length);
    file.write('last', resource(saying('last')));
    await untilEqual('200 last', () => ask(client), 'what the last configuration says');
    assert.equal((await dumped(weir))[0]!.error_state, undefined);
    client.close();
  });

  it('give way to the default when they are removed, or to an error where there is none', async (t) => {
    const file = new FiltersFile(t);
    for (const fields of [{ default_config: saying('default') }, {}]) {
      file.write('1', resource(saying('one')));
      const access_log = [
        {
          name: 'stdout',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
            log_format: { text_format_source: { inline_string: 'flags %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n' } },
          },
        },
      ];
      const configYaml = bootstrapWith([listener(discovered(file.source(), fields), DIRECT, { access_log })]);
      await using weir = await startWeir({ configYaml });
      const client = await clientOf(weir);
      assert.equal(await ask(client), '200 one');
      file.write('2', resource(saying('other'), 'another'));
      const expected = 'default_config' in fields ? '200 default' : '500 ';
      await untilEqual(expected, () => ask(client), 'an answer without the configuration');
      if (expected === '500 ') {
        const isLogged = (): boolean => weir.output.stdout.includes('flags NFCF missing_filter_configuration');
        await untilEqual(true, isLogged, 'an entry of the access log');
      }
      assert.deepEqual(await dumped(weir), []);
      file.write('3', resource(saying('three')));
      await untilEqual('200 three', () => ask(client), 'what the third configuration says');
      client.close();
    }
  });

  it('hold for requests that begin: one on its way keeps to what it began with', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(saying('one')));
    const waiting = Promise.withResolvers<Socket>();
    const upstream = await WireUpstream.start((socket) => socket.once('data', () => waiting.resolve(socket)));
    t.after(() => upstream.close());
    const lb_endpoints = [{ endpoint: { address: socketAddress('127.0.0.1', upstream.port) } }];
    const web = clusterNamed('web', { load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints }] } });
    const route = { match: { prefix: '/' }, route: { cluster: 'web' } };
    await using weir = await startWeir({
      configYaml: bootstrapWith([listener(discovered(file.source()), route)], [web]),
    });
    const client = await clientOf(weir);
    const answer = ask(client);
    const socket = await waiting.promise;
    file.write('2', resource(saying('two')));
    await untilEqual(2, () => stat(weir, 'config_reload'), 'configurations taken over');
    const other = await clientOf(weir);
    other.write(GET);
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    assert.equal(await answer, '200 one');
    other.close();
    client.close();
  });

  it('hear what routes say to them, of their own kind', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(saying('filter')));
    const append = { header: { key: 'by', value: 'route' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' };
    const typed_per_filter_config = {
      late: { '@type': `${MUTATION}PerRoute`, mutations: { response_mutations: [{ append }] } },
    };
    const route = { ...DIRECT, typed_per_filter_config };
    await using weir = await startWeir({ configYaml: bootstrapWith([listener(discovered(file.source()), route)]) });
    const client = await clientOf(weir);
    assert.equal(await ask(client), '200 route');
    file.write('2', resource(failing(418)));
    await untilEqual('418 ', () => ask(client), 'what another kind of filter says');
    client.close();
  });

  it('change a hundred times under traffic without a failed request', async (t) => {
    const file = new FiltersFile(t);
    file.write('0', resource(saying('0')));
    const configYaml = bootstrapWith([listener(discovered(file.source()))]);
    await using weir = await startWeir({ configYaml, args: ['--concurrency', '2'] });
    let isOver = false;
    const asking = Array.from({ length: 4 }, async () => {
      const client = await clientOf(weir);
      const answers: string[] = [];
      while (!isOver) answers.push(await ask(client));
      client.close();
      return answers;
    });
    for (let version = 1; version <= 100; version++) {
      file.write(String(version), resource(saying(String(version))));
      await untilEqual(version + 1, () => stat(weir, 'config_reload'), `reload ${version}`);
    }
    isOver = true;
    for (const answers of await Promise.all(asking)) {
      const versions = answers.map((answer) => Number(/^200 (\d+)$/.exec(answer)?.[1] ?? Number.NaN));
      assert.deepEqual(
        versions,
        versions.toSorted((a, b) => a - b),
      );
      assert.ok(!versions.includes(Number.NaN));
    }
  });
});

describe('filters that do not come', () => {
  it('keep their listener waiting, and say so', async (t) => {
    const plane = await ControlPlane.start(t);
    const form = FORMS[0]!;
    const source = { ...ofForm(form), initial_fetch_timeout: '0s' };
    const first = listener(discovered(source, { default_config: saying('default') }));
    serve(plane, '1', [], [first]);
    const running = startWeir({ configYaml: planeBootstrap(form, [plane]) });
    const isAsked = (): boolean => plane.requests.some(({ type_url }) => type_url.endsWith(EXTENSION));
    await untilEqual(true, isAsked, 'a question for the configuration');
    plane.set(EXTENSION, '1', [resource(saying('one'))]);
    await using weir = await running;
    const client = await clientOf(weir);
    assert.equal(await ask(client), '200 one');
    const second = listener({ ...discovered(source), name: 'later' }, DIRECT);
    serve(plane, '2', [], [first, { ...second, name: 'second' }]);
    const isTold = async (): Promise<boolean> =>
      (await weir.admin('/init_dump')).includes('FilterConfigSubscription init later');
    await untilEqual(true, isTold, 'what the second listener waits for');
    assert.equal((await weir.listeners()).has('second'), false);
    // The question, and what becomes of the answer to it, which does not hold the new one.
    const asked = (): number => plane.requests.filter(({ resource_names: names }) => names.includes('later')).length;
    await untilEqual(2, asked, 'the end of what the question has brought');
    plane.set(EXTENSION, '2', [resource(saying('one')), resource(saying('later'), 'later')]);
    await untilEqual(true, async () => (await weir.listeners()).has('second'), 'the second listener');
    assert.deepEqual(plane.violations, []);
    client.close();
  });

  it('give way to the default after their time, and to an error without one', async (t) => {
    for (const [fields, answer] of [
      [{ default_config: saying('default') }, '200 default'],
      [{}, '500 '],
    ] as const) {
      const file = new FiltersFile(t);
      const filter = discovered(file.source({ initial_fetch_timeout: '0.1s' }), fields);
      await using weir = await startWeir({ configYaml: bootstrapWith([listener(filter)]) });
      const client = await clientOf(weir);
      assert.equal(await ask(client), answer);
      file.write('1', resource(saying('one')));
      await untilEqual('200 one', () => ask(client), 'what has come at last');
      client.close();
    }
  });

  it('are not waited for where the default may go first', async (t) => {
    const file = new FiltersFile(t);
    const fields = { default_config: saying('default'), apply_default_config_without_warming: true };
    const filter = discovered(file.source({ initial_fetch_timeout: '0s' }), fields);
    await using weir = await startWeir({ configYaml: bootstrapWith([listener(filter)]) });
    const client = await clientOf(weir);
    assert.equal(await ask(client), '200 default');
    file.write('1', resource(saying('one')));
    await untilEqual('200 one', () => ask(client), 'what has come at last');
    client.close();
  });
});

describe('filters from management servers', () => {
  for (const form of FORMS.filter(({ generation }) => generation === 'V3')) {
    it(`come, change and go: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      const filter = discovered(ofForm(form), { default_config: saying('default') });
      serve(plane, '1', [], [listener(filter)]);
      plane.set(EXTENSION, '1', [resource(saying('one'))]);
      await using weir = await startWeir({ configYaml: planeBootstrap(form, [plane]) });
      const client = await clientOf(weir);
      assert.equal(await ask(client), '200 one');
      plane.set(EXTENSION, '2', [resource(saying('two'))]);
      await untilEqual('200 two', () => ask(client), 'what the second configuration says');
      // Requests may meet it before its answer is there.
      await plane.answered(EXTENSION, '2');
      plane.set(EXTENSION, '3', [resource(failing(42))]);
      const refusal = await plane.answered(EXTENSION, '3');
      assert.match(refusal.error_detail!.message, /extension configuration late: .*http_status/);
      assert.equal(await ask(client), '200 two');
      if (form.api_type === 'DELTA_GRPC') {
        plane.set(EXTENSION, '4', []);
        await untilEqual('200 default', () => ask(client), 'what the default says');
      }
      plane.set(EXTENSION, '5', [resource(saying('five'))]);
      await untilEqual('200 five', () => ask(client), 'what the last configuration says');
      assert.deepEqual(plane.violations, []);
      assert.equal(await weir.stat('listener_manager.listener_modified'), 0);
      client.close();
    });
  }
});

describe('a filter that is to come by discovery', () => {
  it('is refused where it could not', async () => {
    const source = { path_config_source: { path: '/nowhere' } };
    const cases: readonly (readonly [JsonObject, RegExp])[] = [
      [
        discovered(source, { type_urls: [`${TYPES}.nothing.v3.Nothing`] }),
        /type_urls\[0\]: "\S+Nothing" configures no HTTP/,
      ],
      [discovered(source, { type_urls: [] }), /type_urls/],
      [discovered(source, { default_config: ROUTER.typed_config as JsonObject }), /default_config.*is not supported/],
      [
        discovered(source, { type_urls: [MUTATION], default_config: failing(418) }),
        /default_config: "\S+HTTPFault" is not among type_urls/,
      ],
      [discovered(source, { apply_default_config_without_warming: true }), /warming: needs default_config/],
      [discovered({ ads: {} }), /config_source\.ads: needs dynamic_resources\.ads_config/],
      [{ ...discovered(source), name: '' }, /name/],
    ];
    for (const [filter, reason] of cases) {
      const configYaml = bootstrapWith([listener(filter)]);
      const { stderr, code } = await runWeir(['--mode', 'validate', '--config-yaml', configYaml]);
      assert.notEqual(code, 0);
      assert.match(stderr, reason);
    }
  });
});
