// Filters that end their chain and come by discovery, in the real program: TCP proxies, connection managers with all that they have by
// discovery themselves, and those of extensions.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { ANY_PORT, ask, askAnew, bootstrapOf, clusters, connect, start } from '../support/asked-clusters.ts';
import { type JsonObject, listenerWith } from '../support/bootstrap.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { cluster, FORMS, ofForm, bootstrap as planeBootstrap, ROUTES, serve } from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { dumpedFilters, EXTENSION, FiltersFile, filterResource as resource } from '../support/filters-file.ts';
import { runWeir, type WeirProcess } from '../support/weir-process.ts';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters';
const TYPES = `${FILTERS}.network`;
const TCP = `${TYPES}.tcp_proxy.v3.TcpProxy`;
const HTTP = `${TYPES}.http_connection_manager.v3.HttpConnectionManager`;
const DIRECT = `${TYPES}.direct_response.v3.Config`;
const LIMIT = `${TYPES}.connection_limit.v3.ConnectionLimit`;
const FAULT = `${FILTERS}.http.fault.v3.HTTPFault`;

const tcp = (to: string): JsonObject => ({ '@type': TCP, stat_prefix: 'late_tcp', cluster: to });
const direct = (text: string): JsonObject => ({ '@type': DIRECT, response: { inline_string: text } });

function routesSaying(text: string, name = 'table'): JsonObject {
  const direct_response = { status: 200, body: { inline_string: text } };
  return {
    name,
    virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response }] }],
  };
}

const ROUTER = { name: 'router', typed_config: { '@type': `${FILTERS}.http.router.v3.Router` } };

function http(fields: JsonObject, ...filters: readonly JsonObject[]): JsonObject {
  return { '@type': HTTP, stat_prefix: 'late_http', http_filters: [...filters, ROUTER], ...fields };
}

/** @param fields of the discovery. */
function discovered(config_source: JsonObject, fields: JsonObject = {}): JsonObject {
  return { name: 'late', config_discovery: { config_source, type_urls: [TCP, HTTP, DIRECT], ...fields } };
}

const listener = (...filters: readonly JsonObject[]): JsonObject =>
  listenerWith(filters, { name: 'in', address: ANY_PORT, stat_prefix: 'front' });

const GET = 'GET / HTTP/1.1\r\nhost: here\r\n\r\n';
const getAnew = (weir: WeirProcess): Promise<string> =>
  askAnew(weir, GET).then((text) => text.split('\r\n\r\n').at(-1)!);

const stat = (weir: WeirProcess, name: string): Promise<number | undefined> =>
  weir.stat(`extension_config_discovery.network_filter.late.${name}`);
const missing = (weir: WeirProcess): Promise<number | undefined> =>
  weir.stat('listener.front.network_extension_config_missing');

describe('filters that end their chain, from files', () => {
  it('hold for new connections, while those that there are keep theirs, and are listed', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(tcp('one')));
    await using weir = await start(bootstrapOf(await clusters(t), listener(discovered(file.source()))));
    const first = await connect(weir);
    assert.equal(await ask(first), 'one;');
    file.write('2', resource(tcp('two')));
    await untilEqual('two;', () => askAnew(weir), 'where new connections go');
    assert.equal(await ask(first), 'one;');
    file.write('3', resource(http({ route_config: routesSaying('three;') })));
    await untilEqual('three;', () => getAnew(weir), 'another kind of filter');
    assert.equal(await ask(first), 'one;');
    assert.equal(await weir.stat('listener_manager.listener_in_place_updated'), 0);
    assert.equal(await stat(weir, 'config_reload'), 3);
    const [shown, ...others] = await dumpedFilters(weir);
    assert.deepEqual(
      [shown!.version_info, shown!.client_status, shown!.ecds_filter!.typed_config['@type'], others],
      ['3', 'ACKED', HTTP, []],
    );
    assert.equal(await weir.stat('http.late_http.downstream_rq_total'), 1);
    assert.equal(await weir.stat('listener.front.http.late_http.downstream_rq_2xx'), 1);
    // What the first has counts until it has gone.
    assert.notEqual(await weir.stat('tcp.late_tcp.downstream_cx_total'), undefined);
    first.close();
    await untilEqual(
      undefined,
      () => weir.stat('tcp.late_tcp.downstream_cx_total'),
      'the stats of a filter that is used no more',
    );
  });

  it('may be of extensions', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(direct('hello;')));
    await using weir = await start(bootstrapOf(await clusters(t), listener(discovered(file.source()))));
    assert.equal(await askAnew(weir), 'hello;');
    file.write('2', resource(direct('goodbye;')));
    await untilEqual('goodbye;', () => askAnew(weir), 'another answer');
  });

  it('are refused for another type, or for faults, which leaves the one before', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(tcp('two')));
    await using weir = await start(bootstrapOf(await clusters(t), listener(discovered(file.source()))));
    assert.equal(await askAnew(weir), 'two;');
    file.write('2', resource({ '@type': `${TYPES}.echo.v3.Echo` }));
    await untilEqual(1, () => stat(weir, 'config_fail'), 'refusals');
    assert.match(weir.output.stderr, /extension configuration late: .*echo.*is not among type_urls/);
    file.write('3', resource({ ...tcp('two'), max_connect_attempts: 0 }));
    await untilEqual(2, () => stat(weir, 'config_fail'), 'refusals');
    const [shown] = await dumpedFilters(weir);
    assert.match(shown!.error_state!.details, /max_connect_attempts/);
    assert.equal(await askAnew(weir), 'two;');
  });

  it('give way to the default when they go, and without one nobody is let in', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(tcp('two')));
    const all = await clusters(t);
    const limit = { name: 'limit', typed_config: { '@type': LIMIT, stat_prefix: 'limited', max_connections: 5 } };
    const byDefault = { default_config: http({ route_config: routesSaying('default;') }) };
    await using weir = await start(bootstrapOf(all, listener(limit, discovered(file.source(), byDefault))));
    assert.equal(await askAnew(weir), 'two;');
    file.write('2');
    await untilEqual('default;', () => getAnew(weir), 'the default');
    assert.equal(await missing(weir), 0);

    file.write('3', resource(tcp('two')));
    await using other = await start(bootstrapOf(all, listener(limit, discovered(file.source()))));
    const staying = await connect(other);
    assert.equal(await ask(staying), 'two;');
    file.write('4');
    await untilEqual('ended', () => askAnew(other), 'the end of new connections');
    assert.equal(await ask(staying), 'two;');
    assert.equal(await missing(other), 1);
    staying.close();
    // Whoever was not let in has given back his place at the filters before it.
    await other.untilStat('connection_limit.limited.active_connections', 0);
    assert.equal(await other.stat('listener.front.downstream_cx_active'), 0);
    file.write('5', resource(tcp('one')));
    await untilEqual('one;', () => askAnew(other), 'what has come again');
  });

  it('end their connections with the process, those of a former one as well', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(http({ route_config: routesSaying('one;') })));
    await using weir = await start(bootstrapOf(await clusters(t), listener(discovered(file.source()))));
    const first = await connect(weir);
    await ask(first, GET);
    file.write('2', resource(http({ route_config: routesSaying('two;') })));
    await untilEqual('two;', () => getAnew(weir), 'another configuration');
    const second = await connect(weir);
    await ask(second, GET);
    const ends = Promise.all([first, second].map(({ socket }) => once(socket, 'close')));
    for (const { socket } of [first, second]) socket.on('end', () => socket.end());
    await weir.stop();
    await ends;
  });
});

describe('a connection manager that comes by discovery', () => {
  for (const form of FORMS.filter(({ generation }) => generation === 'V3')) {
    it(`has routes and filters by discovery, which its listener waits for: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      const rds = { route_config_name: 'table', config_source: ofForm(form) };
      const inner = { name: 'inner', config_discovery: { config_source: ofForm(form), type_urls: [FAULT] } };
      const fault = (http_status: number): JsonObject => ({
        '@type': FAULT,
        abort: { http_status, percentage: { numerator: http_status === 503 ? 100 : 0 } },
      });
      plane.set(EXTENSION, '1', [resource(http({ rds }, inner)), resource(fault(200), 'inner')]);
      serve(plane, '1', await clusters(t), [listener(discovered(ofForm(form)))]);
      plane.set(ROUTES, '1', [routesSaying('first;')]);
      await using weir = await start(planeBootstrap(form, [plane]));
      assert.equal(await getAnew(weir), 'first;');
      const staying = await connect(weir);
      assert.match(await ask(staying, GET), /first;/);
      // Its table is a resource of its own: connections that there are meet another one.
      plane.set(ROUTES, '2', [routesSaying('second;')]);
      await untilEqual('second;', () => getAnew(weir), 'other routes');
      assert.match(await ask(staying, GET), /second;/);
      plane.set(EXTENSION, '2', [resource(http({ rds }, inner)), resource(fault(503), 'inner')]);
      await untilEqual(true, async () => (await statusAnew(weir)) === 503, 'another inner filter');
      staying.close();
      assert.deepEqual(plane.violations, []);
    });
  }

  it('takes effect when its own table is there, and not before', async (t) => {
    const plane = await ControlPlane.start(t);
    const form = FORMS.find(
      ({ name }) => name === FORMS.find(({ generation, isAggregated }) => generation === 'V3' && isAggregated)!.name,
    )!;
    const manager = (route_config_name: string): JsonObject =>
      http({ rds: { route_config_name, config_source: ofForm(form) } });
    plane.set(EXTENSION, '1', [resource(manager('table'))]);
    plane.set(ROUTES, '1', [routesSaying('first;')]);
    serve(plane, '1', await clusters(t), [listener(discovered(ofForm(form)))]);
    await using weir = await start(planeBootstrap(form, [plane]));
    assert.equal(await getAnew(weir), 'first;');
    plane.set(EXTENSION, '2', [resource(manager('other'))]);
    await plane.answered(EXTENSION, '2');
    for (let i = 0; i < 20; i++) assert.equal(await getAnew(weir), 'first;');
    plane.set(ROUTES, '2', [routesSaying('first;'), routesSaying('second;', 'other')]);
    await untilEqual('second;', () => getAnew(weir), 'the manager with its table');
    // One that never took effect leaves nothing behind.
    plane.set(EXTENSION, '3', [resource(manager('never'))]);
    await plane.answered(EXTENSION, '3');
    plane.set(EXTENSION, '4', [resource(manager('table'))]);
    await untilEqual('first;', () => getAnew(weir), 'the manager behind one that has never taken effect');
    await untilEqual(undefined, () => weir.stat('http.late_http.rds.never.update_attempt'), 'the stats of its table');
  });
});

async function statusAnew(weir: WeirProcess): Promise<number> {
  const client = await connect(weir);
  const { status } = await client.write(GET).response();
  client.close();
  return status;
}

describe('a filter at the end of a chain that is to come by discovery', () => {
  const source = { path_config_source: { path: '/x' } };
  const REFUSED: readonly (readonly [what: string, filter: JsonObject, reason: RegExp])[] = [
    [
      'one that others stand behind',
      discovered(source, { type_urls: [LIMIT] }),
      /config_discovery\.type_urls\[0\]: .*configures a filter that stands before another, and is the last here/,
    ],
    [
      'a filter of HTTP',
      discovered(source, { type_urls: [FAULT] }),
      /configures no network filter of this build that ends/,
    ],
    [
      'a default of another type',
      discovered(source, { type_urls: [TCP], default_config: direct('x') }),
      /config_discovery\.default_config: .*is not among type_urls/,
    ],
    [
      'a default with faults',
      discovered(source, { default_config: tcp('nowhere') }),
      /config_discovery\.default_config.*cluster: cluster "nowhere" does not exist/,
    ],
  ];
  for (const [what, filter, reason] of REFUSED) {
    it(`may not be ${what}`, async () => {
      const configYaml = bootstrapOf([cluster('one', 1)], listener(filter));
      const { stderr, code } = await runWeir(['--mode', 'validate', '--config-yaml', configYaml]);
      assert.match(stderr, reason);
      assert.equal(code, 1);
    });
  }
});
