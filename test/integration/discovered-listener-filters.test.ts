// Listener filters whose configurations come by discovery, in the real program.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ANY_PORT, ask, askAnew, bootstrapOf, clusters, connect, start } from '../support/asked-clusters.ts';
import { type JsonObject, listenerWith, tcpFilter } from '../support/bootstrap.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { cluster, FORMS, ofForm, bootstrap as planeBootstrap, serve } from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { dumpedFilters, EXTENSION, FiltersFile, filterResource as resource } from '../support/filters-file.ts';
import { runWeir, type WeirProcess } from '../support/weir-process.ts';

const TYPES = 'type.googleapis.com/envoy.extensions.filters.listener';
const HEADER = `${TYPES}.proxy_protocol.v3.ProxyProtocol`;
const LIMIT = `${TYPES}.local_ratelimit.v3.LocalRateLimit`;
const HTTP = `${TYPES}.http_inspector.v3.HttpInspector`;

/** Connections begin with a header; others are refused. */
const header = (stat_prefix = ''): JsonObject => ({ '@type': HEADER, stat_prefix });
/** Lets everybody in, or nobody. */
const limit = (max_tokens: number, isEnabled = true): JsonObject => ({
  '@type': LIMIT,
  stat_prefix: 'limited',
  token_bucket: { max_tokens, tokens_per_fill: 1, fill_interval: '3600s' },
  runtime_enabled: { default_value: isEnabled, runtime_key: 'x' },
});
const OPEN = limit(1, false);
const INTRODUCED = 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nx';

/** @param fields of the discovery. @param filter of the filter. */
function discovered(config_source: JsonObject, fields: JsonObject = {}, filter: JsonObject = {}): JsonObject {
  return { name: 'late', config_discovery: { config_source, type_urls: [HEADER, LIMIT], ...fields }, ...filter };
}

const listener = (...listener_filters: readonly JsonObject[]): JsonObject =>
  listenerWith([tcpFilter({ cluster: 'one' })], {
    name: 'in',
    address: ANY_PORT,
    stat_prefix: 'front',
    listener_filters,
  });

const stat = (weir: WeirProcess, name: string): Promise<number | undefined> =>
  weir.stat(`extension_config_discovery.tcp_listener_filter.late.${name}`);
const missing = (weir: WeirProcess): Promise<number | undefined> =>
  weir.stat('listener.front.extension_config_missing');

describe('listener filters from files', () => {
  it('hold for new connections, while those that wait at one keep theirs, and are listed', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(header('first')));
    await using weir = await start(bootstrapOf(await clusters(t), listener(discovered(file.source()))));
    assert.equal(await askAnew(weir, INTRODUCED), 'one;');
    assert.equal(await askAnew(weir), 'ended');
    const waiting = await connect(weir);
    waiting.write('PROXY TCP4 ');
    await weir.untilStat('listener.front.downstream_pre_cx_active', 1);
    file.write('2', resource(OPEN));
    await untilEqual('one;', () => askAnew(weir), 'another kind of filter');
    assert.equal(await weir.stat('proxy_proto.first.versions.v1.found'), 1);
    assert.equal(await ask(waiting, '192.0.2.1 192.0.2.2 1 2\r\nx'), 'one;');
    waiting.close();
    // What it has counted goes when nobody waits at it any more.
    await untilEqual(
      undefined,
      () => weir.stat('proxy_proto.first.versions.v1.found'),
      'the stats of the former filter',
    );
    assert.equal(await stat(weir, 'config_reload'), 2);
    assert.equal(await weir.stat('listener_manager.listener_modified'), 0);
    const [shown, ...others] = await dumpedFilters(weir);
    assert.deepEqual(
      [shown!.version_info, shown!.client_status, shown!.ecds_filter!.typed_config['@type'], others],
      ['2', 'ACKED', LIMIT, []],
    );
  });

  it('are refused for another type, or for faults, which leaves the one before', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(header()));
    await using weir = await start(bootstrapOf(await clusters(t), listener(discovered(file.source()))));
    file.write('2', resource({ '@type': HTTP }));
    await untilEqual(1, () => stat(weir, 'config_fail'), 'refusals');
    assert.match(weir.output.stderr, /extension configuration late: .*http_inspector.*is not among type_urls/);
    file.write('3', resource({ ...header(), disallowed_versions: ['V1', 'V2'] }));
    await untilEqual(2, () => stat(weir, 'config_fail'), 'refusals');
    const [shown] = await dumpedFilters(weir);
    assert.deepEqual([shown!.version_info, shown!.client_status], ['1', 'NACKED']);
    assert.match(shown!.error_state!.details, /disallowed_versions: leaves no version/);
    assert.equal(await askAnew(weir), 'ended');
    assert.equal(await askAnew(weir, INTRODUCED), 'one;');
  });

  it('give way to the default when they go, and without one nobody is let in', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(header()));
    const all = await clusters(t);
    await using weir = await start(bootstrapOf(all, listener(discovered(file.source(), { default_config: OPEN }))));
    assert.equal(await askAnew(weir), 'ended');
    file.write('2');
    await untilEqual('one;', () => askAnew(weir), 'the default');
    assert.equal(await missing(weir), 0);

    file.write('3', resource(OPEN));
    await using other = await start(bootstrapOf(all, listener(discovered(file.source()))));
    const staying = await connect(other);
    assert.equal(await ask(staying), 'one;');
    file.write('4');
    await untilEqual('ended', () => askAnew(other), 'the end of new connections');
    assert.equal(await missing(other), 1);
    assert.equal(await ask(staying), 'one;');
    staying.close();
    file.write('5', resource(OPEN));
    await untilEqual('one;', () => askAnew(other), 'what has come again');
  });

  it('do not look at connections for which they are disabled, and stand in their order', async (t) => {
    const file = new FiltersFile(t);
    file.write('1', resource(header()));
    const filter_disabled = { not_match: { destination_port_range: { start: 1, end: 2 } } };
    const first = { name: 'limit', typed_config: limit(1) };
    const filters = [first, discovered(file.source(), {}, { filter_disabled })];
    await using weir = await start(bootstrapOf(await clusters(t), listener(...filters)));
    assert.equal(await askAnew(weir), 'one;');
    assert.equal(await askAnew(weir), 'ended');
    assert.equal(await weir.stat('listener_local_ratelimit.limited.rate_limited'), 1);
  });

  it('are waited for, no longer than it was said, and not at all with a default that holds from the beginning', async (t) => {
    const plane = await ControlPlane.start(t);
    plane.isSilent = true;
    const [form] = FORMS;
    const of = (fields: JsonObject, source: JsonObject = {}): JsonObject =>
      listener(discovered({ ...ofForm({ ...form!, isAggregated: false }), ...source }, fields));
    const all = [...(await clusters(t)), cluster('xds_0', plane.port, { http2_protocol_options: {} })];
    const soon = { initial_fetch_timeout: '0.3s' };
    await using late = await start(bootstrapOf(all, of({ default_config: OPEN }, soon)));
    assert.equal(await askAnew(late), 'one;');
    assert.equal(await stat(late, 'init_fetch_timeout'), 1);
    const begins = { default_config: OPEN, apply_default_config_without_warming: true };
    await using early = await start(bootstrapOf(all, of(begins, { initial_fetch_timeout: '0s' })));
    assert.equal(await askAnew(early), 'one;');
    await using without = await start(bootstrapOf(all, of({}, soon)));
    assert.equal(await askAnew(without), 'ended');
    assert.equal(await missing(without), 1);
  });
});

describe('listener filters from a management server', () => {
  for (const form of FORMS.filter(({ generation }) => generation === 'V3')) {
    it(`come, change, are refused with the reason, and go: ${form.name}`, async (t) => {
      const plane = await ControlPlane.start(t);
      plane.set(EXTENSION, '1', [resource(header())]);
      serve(plane, '1', await clusters(t), [listener(discovered(ofForm(form)))]);
      await using weir = await start(planeBootstrap(form, [plane]));
      assert.equal(await askAnew(weir, INTRODUCED), 'one;');
      plane.set(EXTENSION, '2', [resource(limit(0))]);
      const { error_detail: refusal } = await plane.answered(EXTENSION, '2');
      assert.match(refusal!.message, /extension configuration late: .*typed_config\.token_bucket\.max_tokens: /);
      assert.equal(await askAnew(weir), 'ended');
      plane.set(EXTENSION, '3', [resource(OPEN)]);
      await untilEqual('one;', () => askAnew(weir), 'another configuration');
      await plane.answered(EXTENSION, '3');
      plane.set(EXTENSION, '4', []);
      // State of the world tells nothing of what it leaves out.
      if (form.api_type === 'DELTA_GRPC') await untilEqual('ended', () => askAnew(weir), 'the end of new connections');
      assert.deepEqual(plane.violations, []);
    });
  }
});

describe('a listener filter that is to come by discovery', () => {
  const source = { path_config_source: { path: '/x' } };
  const udp = {
    name: 'in',
    address: { socket_address: { protocol: 'UDP', address: '127.0.0.1', port_value: 0 } },
    listener_filters: [discovered(source)],
  };
  const REFUSED: readonly (readonly [what: string, refused: JsonObject, reason: RegExp])[] = [
    [
      'one of another place',
      listener(
        discovered(source, {
          type_urls: ['type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig'],
        }),
      ),
      /config_discovery\.type_urls\[0\]: .*configures no listener filter of this build for connections/,
    ],
    ['one without a name', listener({ ...discovered(source), name: '' }), /listener_filters\[0\]/],
    [
      'a default of another type',
      listener(discovered(source, { type_urls: [HEADER], default_config: OPEN })),
      /config_discovery\.default_config: .*is not among type_urls/,
    ],
    [
      'one of datagrams',
      udp,
      /listener_filters\[0\]\.config_discovery: a filter of datagrams does not come by discovery/,
    ],
  ];
  for (const [what, refused, reason] of REFUSED) {
    it(`may not be ${what}`, async () => {
      const configYaml = bootstrapOf([cluster('one', 1)], refused);
      const { stderr, code } = await runWeir(['--mode', 'validate', '--config-yaml', configYaml]);
      assert.match(stderr, reason);
      assert.equal(code, 1);
    });
  }
});
