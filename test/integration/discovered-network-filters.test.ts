// Network filters whose configurations come by discovery, in the real program: what is moved over them holds for new connections, and those
// that there are keep to what they have met.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ANY_PORT, ask, askAnew, bootstrapOf, clusters, connect, start } from '../support/asked-clusters.ts';
import { type JsonObject, listenerWith, tcpFilter } from '../support/bootstrap.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { cluster, FORMS, ofForm, bootstrap as planeBootstrap, serve } from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import {
  dumpedFilters as dumped,
  EXTENSION,
  FiltersFile,
  filterResource as resource,
} from '../support/filters-file.ts';
import { runWeir, type WeirProcess } from '../support/weir-process.ts';

const TYPES = 'type.googleapis.com/envoy.extensions.filters.network';
const STATE = `${TYPES}.set_filter_state.v3.Config`;
const LIMIT = `${TYPES}.connection_limit.v3.ConnectionLimit`;
const LOG = {
  name: 'envoy.access_loggers.stdout',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog',
    log_format: { text_format_source: { inline_string: 'ended %RESPONSE_FLAGS% %CONNECTION_TERMINATION_DETAILS%\n' } },
  },
};

/** Connections go to this cluster. */
function to(name: string): JsonObject {
  const format_string = { text_format_source: { inline_string: name } };
  return { '@type': STATE, on_new_connection: [{ object_key: 'envoy.tcp_proxy.cluster', format_string }] };
}

function limit(max_connections: number): JsonObject {
  return { '@type': LIMIT, stat_prefix: 'limited', max_connections };
}

/** @param fields of the discovery. */
function discovered(config_source: JsonObject, fields: JsonObject = {}): JsonObject {
  return { name: 'late', config_discovery: { config_source, type_urls: [STATE, LIMIT], ...fields } };
}

function listener(...filters: readonly JsonObject[]): JsonObject {
  return listenerWith([...filters, tcpFilter({ cluster: 'one', access_log: [LOG] })], {
    name: 'in',
    address: ANY_PORT,
  });
}

function bootstrap(clusterList: readonly JsonObject[], ...filters: readonly JsonObject[]): string {
  return bootstrapOf(clusterList, listener(...filters));
}

const stat = (weir: WeirProcess, name: string): Promise<number | undefined> =>
  weir.stat(`extension_config_discovery.network_filter.late.${name}`);

const missing = (weir: WeirProcess): Promise<number | undefined> =>
  weir.stat('listener.127.0.0.1_0.network_extension_config_missing');

describe('network filters from files', () => {
  it('hold for new connections, while those that there are keep theirs, and are listed', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(to('one')));
    await using weir = await start(bootstrap(await clusters(t), discovered(file.source())));
    const first = await connect(weir);
    assert.equal(await ask(first), 'one;');
    file.write('2', resource(to('two')));
    await untilEqual('two;', () => askAnew(weir), 'where new connections go');
    assert.equal(await ask(first), 'one;');
    assert.equal(await weir.stat('listener_manager.listener_in_place_updated'), 0);
    assert.equal(await stat(weir, 'config_reload'), 2);
    const [shown, ...others] = await dumped(weir);
    assert.deepEqual(
      [shown!.version_info, shown!.client_status, shown!.ecds_filter!.name, others],
      ['2', 'ACKED', 'late', []],
    );
    first.close();
  });

  it('are other filters, or none of the kind that may be: that is refused and leaves the one before it', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(to('two')));
    await using weir = await start(bootstrap(await clusters(t), discovered(file.source())));
    assert.equal(await askAnew(weir), 'two;');
    file.write('2', resource({ '@type': `${TYPES}.sni_cluster.v3.SniCluster` }));
    await untilEqual(1, () => stat(weir, 'config_fail'), 'refusals');
    assert.match(weir.output.stderr, /extension configuration late: .*sni_cluster.*is not among type_urls/);
    assert.equal(await askAnew(weir), 'two;');
    file.write('3', resource({ '@type': LIMIT, stat_prefix: 'limited' }));
    await untilEqual(2, () => stat(weir, 'config_fail'), 'refusals');
    const [shown] = await dumped(weir);
    assert.deepEqual(
      [shown!.version_info, shown!.client_status, shown!.error_state!.version_info],
      ['1', 'NACKED', '3'],
    );
    assert.match(shown!.error_state!.details, /max_connections/);
    file.write('4', resource(limit(1)));
    await untilEqual('one;', () => askAnew(weir), 'another kind of filter');
    await weir.untilStat('connection_limit.limited.active_connections', 0);
    const first = await connect(weir);
    assert.equal(await ask(first), 'one;');
    assert.equal(await askAnew(weir), 'ended');
    assert.equal(await weir.stat('connection_limit.limited.limited_connections'), 1);
    first.close();
  });

  it('leave to the other filters of the chain what they know, and to connections the filters that they have met', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(to('one')));
    const limited = { name: 'limit', typed_config: limit(2) };
    await using weir = await start(bootstrap(await clusters(t), limited, discovered(file.source())));
    const first = await connect(weir);
    assert.equal(await ask(first), 'one;');
    file.write('2', resource(to('two')));
    await untilEqual('two;', () => askAnew(weir), 'where new connections go');
    await weir.untilStat('connection_limit.limited.active_connections', 1);
    const second = await connect(weir);
    assert.equal(await ask(second), 'two;');
    assert.equal(await askAnew(weir), 'ended');
    // A place that one has given back which has met the former filter is a place for others.
    first.close();
    await untilEqual('two;', () => askAnew(weir), 'a place');
    second.close();
    await weir.untilStat('connection_limit.limited.active_connections', 0);
  });

  it('go on counting until their last connection has ended, and give back what they count by then', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(limit(5)));
    await using weir = await start(bootstrap(await clusters(t), discovered(file.source())));
    const staying = await connect(weir);
    assert.equal(await ask(staying), 'one;');
    file.write('2', resource(to('two')));
    await untilEqual('two;', () => askAnew(weir), 'where new connections go');
    const active = (): Promise<number | undefined> => weir.stat('connection_limit.limited.active_connections');
    assert.equal(await active(), 1);
    assert.equal(await ask(staying), 'one;');
    staying.close();
    await untilEqual(undefined, active, 'the stats of a filter that is used no more');
  });

  it('give way to the default when they go, and without one nobody is let in (NFCF)', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(to('two')));
    const all = await clusters(t);
    await using weir = await start(bootstrap(all, discovered(file.source(), { default_config: to('one') })));
    assert.equal(await askAnew(weir), 'two;');
    file.write('2');
    await untilEqual('one;', () => askAnew(weir), 'the default');
    file.write('3', resource(to('two')));
    await untilEqual('two;', () => askAnew(weir), 'what has come again');
    assert.deepEqual(await missing(weir), 0);

    await using other = await start(bootstrap(all, discovered(file.source())));
    assert.equal(await askAnew(other), 'two;');
    const staying = await connect(other);
    assert.equal(await ask(staying), 'two;');
    file.write('4');
    await untilEqual('ended', () => askAnew(other), 'the end of new connections');
    assert.equal(await ask(staying), 'two;');
    assert.equal(await missing(other), 1);
    await untilEqual(true, () => other.output.stdout.includes('ended NFCF missing_filter_configuration'), 'a log');
    staying.close();
    file.write('5', resource(to('one')));
    await untilEqual('one;', () => askAnew(other), 'what has come again');
  });

  it('may say that they take no part', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(to('two')));
    const fields = { type_urls: [STATE, `${TYPES}.rbac.v3.RBAC`] };
    await using weir = await start(bootstrap(await clusters(t), discovered(file.source(), fields)));
    assert.equal(await askAnew(weir), 'two;');
    file.write('2', resource({ '@type': `${TYPES}.rbac.v3.RBAC`, stat_prefix: 'open' }));
    await untilEqual('one;', () => askAnew(weir), 'the cluster of the proxy');
  });

  it('are waited for, no longer than it was said, and not at all with a default that holds from the beginning', async (t) => {
    const plane = await ControlPlane.start(t);
    plane.isSilent = true;
    const [form] = FORMS;
    const of = (fields: JsonObject, source: JsonObject = {}): JsonObject =>
      discovered({ ...ofForm({ ...form!, isAggregated: false }), ...source }, fields);
    const all = [...(await clusters(t)), cluster('xds_0', plane.port, { http2_protocol_options: {} })];
    const soon = { initial_fetch_timeout: '0.3s' };
    await using late = await start(bootstrap(all, of({ default_config: to('two') }, soon)));
    assert.equal(await askAnew(late), 'two;');
    assert.equal(await stat(late, 'init_fetch_timeout'), 1);
    const never = { initial_fetch_timeout: '0s' };
    const begins = { default_config: to('two'), apply_default_config_without_warming: true };
    await using early = await start(bootstrap(all, of(begins, never)));
    assert.equal(await askAnew(early), 'two;');
    await using without = await start(bootstrap(all, of({}, soon)));
    assert.equal(await askAnew(without), 'ended');
  });
});

describe('network filters from a management server', () => {
  for (const form of FORMS.filter(({ generation }) => generation === 'V3')) {
    it(`come, change, are refused with the reason, and go: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      plane.set(EXTENSION, '1', [resource(to('two'))]);
      serve(plane, '1', await clusters(t), [listener(discovered(ofForm(form)))]);
      await using weir = await start(planeBootstrap(form, [plane]));
      assert.equal(await askAnew(weir), 'two;');
      assert.equal((await plane.answered(EXTENSION, '1')).error_detail, null);
      plane.set(EXTENSION, '2', [resource(limit(0))]);
      const { error_detail: refusal } = await plane.answered(EXTENSION, '2');
      assert.match(refusal!.message, /extension configuration late: .*typed_config\.max_connections: /);
      assert.equal(await askAnew(weir), 'two;');
      plane.set(EXTENSION, '3', [resource(to('one'))]);
      await untilEqual('one;', () => askAnew(weir), 'another configuration');
      // Connections may meet it before its answer is there.
      await plane.answered(EXTENSION, '3');
      plane.set(EXTENSION, '4', []);
      // State of the world tells nothing of what it leaves out.
      if (form.api_type === 'DELTA_GRPC') await untilEqual('ended', () => askAnew(weir), 'the end of new connections');
      assert.deepEqual(plane.violations, []);
    });
  }
});

describe('a network filter that is to come by discovery', () => {
  const REFUSED: readonly (readonly [what: string, filter: JsonObject, reason: RegExp])[] = [
    [
      'one that ends its chain',
      discovered({ path_config_source: { path: '/x' } }, { type_urls: [`${TYPES}.tcp_proxy.v3.TcpProxy`] }),
      /config_discovery\.type_urls\[0\]: .*tcp_proxy/,
    ],
    [
      'another one that does',
      discovered({ path_config_source: { path: '/x' } }, { type_urls: [`${TYPES}.redis_proxy.v3.RedisProxy`] }),
      /type_urls\[0\]: .*ends its chain/,
    ],
    [
      'a filter of HTTP',
      discovered(
        { path_config_source: { path: '/x' } },
        { type_urls: ['type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault'] },
      ),
      /type_urls\[0\]: .*configures no network filter of this build/,
    ],
    [
      'one without a name',
      { ...discovered({ path_config_source: { path: '/x' } }), name: '' },
      /config_discovery: needs a name beside it/,
    ],
    [
      'a default of another type',
      discovered({ path_config_source: { path: '/x' } }, { type_urls: [STATE], default_config: limit(1) }),
      /config_discovery\.default_config: .*is not among type_urls/,
    ],
  ];
  for (const [what, filter, reason] of REFUSED) {
    it(`may not be ${what}`, async () => {
      const configYaml = bootstrap([cluster('one', 1)], filter);
      const { stderr, code } = await runWeir(['--mode', 'validate', '--config-yaml', configYaml]);
      assert.match(stderr, reason);
      assert.equal(code, 1);
    });
  }
});
