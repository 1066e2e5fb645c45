import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OverloadSettings } from '../../../../src/config/index.ts';
import {
  faultTexts,
  type Json,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  tcpFilter,
  withListeners,
} from '../../../support/bootstrap.ts';

const TYPES = 'type.googleapis.com/envoy.extensions.resource_monitors';
const HEAP: JsonObject = {
  name: 'envoy.resource_monitors.fixed_heap',
  typed_config: { '@type': `${TYPES}.fixed_heap.v3.FixedHeapConfig`, max_heap_size_bytes: 1000 },
};
const TIMERS = 'type.googleapis.com/envoy.config.overload.v3.ScaleTimersOverloadActionConfig';
const AT_90: JsonObject = { name: 'envoy.resource_monitors.fixed_heap', threshold: { value: 0.9 } };

function monitor(name: string, type: string, fields: JsonObject): JsonObject {
  return { name, typed_config: { '@type': `${TYPES}.${type}`, ...fields } };
}

function action(name: string, fields: JsonObject = {}, trigger: JsonObject = AT_90): JsonObject {
  return { name: `envoy.overload_actions.${name}`, triggers: [trigger], ...fields };
}

function settings(fields: JsonObject): OverloadSettings {
  return mustLoad({ overload_manager: { resource_monitors: [HEAP], ...fields } }).overload!;
}

function errors(fields: JsonObject): string[] {
  return faultTexts(load({ overload_manager: { resource_monitors: [HEAP], ...fields } }));
}

test('without an overload manager there are no settings, and with one there are defaults', () => {
  assert.equal(mustLoad({}).overload, undefined);
  assert.deepEqual(settings({}), {
    refreshIntervalMs: 1000,
    monitors: [{ name: 'proxy.resource_monitors.fixed_heap', resource: { kind: 'heap', maxBytes: 1000 } }],
    actions: [],
    shedPoints: [],
    timeoutFloors: {},
    expensiveFromBytes: 1,
  });
});

test('every monitor of this build is read, by either of its names', () => {
  const monitors: Json[] = [
    monitor('proxy.resource_monitors.injected_resource', 'injected_resource.v3.InjectedResourceConfig', {
      filename: '/p',
    }),
    monitor(
      'envoy.resource_monitors.global_downstream_max_connections',
      'downstream_connections.v3.DownstreamConnectionsConfig',
      {
        max_active_downstream_connections: '7',
      },
    ),
    monitor('group', 'cgroup_memory.v3.CgroupMemoryConfig', { max_memory_bytes: 5 }),
    monitor('whole group', 'cgroup_memory.v3.CgroupMemoryConfig', {}),
    { name: 'envoy.resource_monitors.fixed_heap', config: { max_heap_size_bytes: 2 } },
  ];
  assert.deepEqual(settings({ resource_monitors: monitors }).monitors, [
    { name: 'proxy.resource_monitors.injected_resource', resource: { kind: 'file', path: '/p' } },
    { name: 'proxy.resource_monitors.global_downstream_max_connections', resource: { kind: 'connections', max: 7 } },
    { name: 'group', resource: { kind: 'group-memory', maxBytes: 5 } },
    { name: 'whole group', resource: { kind: 'group-memory', maxBytes: Number.POSITIVE_INFINITY } },
    { name: 'proxy.resource_monitors.fixed_heap', resource: { kind: 'heap', maxBytes: 2 } },
  ]);
});

test('actions and load shed points are known by either prefix, and triggers have one or two thresholds', () => {
  const scaled = {
    name: 'proxy.resource_monitors.fixed_heap',
    scaled: { scaling_threshold: 0.5, saturation_threshold: 1 },
  };
  const loaded = settings({
    refresh_interval: '0.25s',
    buffer_factory_config: { minimum_account_to_track_power_of_two: 12 },
    actions: [
      action('stop_accepting_requests'),
      { name: 'proxy.overload_actions.reset_high_memory_stream', triggers: [scaled] },
    ],
    loadshed_points: [{ name: 'envoy.load_shed_points.tcp_listener_accept', triggers: [scaled] }],
  });
  const monitorName = 'proxy.resource_monitors.fixed_heap';
  const between = { monitor: monitorName, fromPressure: 0.5, toPressure: 1 };
  assert.equal(loaded.refreshIntervalMs, 250);
  assert.equal(loaded.expensiveFromBytes, 4096);
  assert.deepEqual(loaded.actions, [
    { name: 'stop_accepting_requests', triggers: [{ monitor: monitorName, fromPressure: 0.9, toPressure: 0.9 }] },
    { name: 'reset_high_memory_stream', triggers: [between] },
  ]);
  assert.deepEqual(loaded.shedPoints, [{ name: 'tcp_listener_accept', triggers: [between] }]);
});

test('timeouts may be shortened to a time or to a part, and those that there are not are warned of', () => {
  const timer_scale_factors = [
    { timer: 'HTTP_DOWNSTREAM_CONNECTION_IDLE', min_timeout: '2s' },
    { timer: 'HTTP_DOWNSTREAM_STREAM_IDLE', min_scale: { value: 10 } },
    { timer: 'TRANSPORT_SOCKET_CONNECT', min_timeout: '1s' },
  ];
  const reduce = action('reduce_timeouts', { typed_config: { '@type': TIMERS, timer_scale_factors } });
  const result = load({ overload_manager: { resource_monitors: [HEAP], actions: [reduce] } });
  assert.deepEqual(faultTexts(result), []);
  assert.deepEqual(faultTexts(result, 'warning'), [
    'overload_manager.actions[0].typed_config.timer_scale_factors[2].timer: timer TRANSPORT_SOCKET_CONNECT is not supported by this build; there is no such timeout',
  ]);
  assert.deepEqual(result.bootstrap!.overload!.timeoutFloors, {
    HTTP_DOWNSTREAM_CONNECTION_IDLE: { minMs: 2000, minScale: 0 },
    HTTP_DOWNSTREAM_STREAM_IDLE: { minMs: 0, minScale: 0.1 },
  });
});

test('names that nothing stands for are refused by name', () => {
  const unknown = errors({ actions: [action('cook_coffee'), action('shrink_heap', {}, { ...AT_90, name: 'rain' })] });
  assert.equal(unknown.length, 2);
  assert.match(
    unknown[0]!,
    /^overload_manager\.actions\[0\]\.name: "envoy\.overload_actions\.cook_coffee" is none of .*shrink_heap/,
  );
  assert.equal(unknown[1], 'overload_manager.actions[1].triggers[0].name: no resource monitor is "rain"');
  const cpu = { name: 'envoy.resource_monitors.cpu', typed_config: { '@type': `${TYPES}.cpu.v3.CpuConfig` } };
  assert.match(errors({ resource_monitors: [cpu] })[0]!, /^overload_manager\.resource_monitors\[0\].*cpu/);
});

test('load shed points that this build has not are warned of and left out', () => {
  const points = [{ name: 'envoy.load_shed_points.http2_server_go_away_on_dispatch', triggers: [AT_90] }];
  const result = load({ overload_manager: { resource_monitors: [HEAP], loadshed_points: points } });
  assert.deepEqual(result.bootstrap!.overload!.shedPoints, []);
  assert.deepEqual(faultTexts(result, 'warning'), [
    'overload_manager.loadshed_points[0].name: "envoy.load_shed_points.http2_server_go_away_on_dispatch" is not supported by this build; nothing is shed there',
  ]);
});

test('what makes no sense together is refused', () => {
  const at = 'overload_manager';
  const name = '"envoy.overload_actions.shrink_heap"';
  const upsideDown = { name: HEAP.name!, scaled: { scaling_threshold: 0.8, saturation_threshold: 0.8 } };
  const factors = [
    { timer: 'HTTP_DOWNSTREAM_STREAM_IDLE', min_timeout: '1s' },
    { timer: 'HTTP_DOWNSTREAM_STREAM_IDLE', min_timeout: '2s' },
  ];
  const typed_config = { '@type': TIMERS, timer_scale_factors: factors };
  const cases: readonly (readonly [fields: JsonObject, fault: string])[] = [
    [{ refresh_interval: '0s' }, `${at}.refresh_interval: must be longer than 0s`],
    [
      { resource_monitors: [HEAP, { ...HEAP, name: 'proxy.resource_monitors.fixed_heap' }] },
      `${at}.resource_monitors[1].name: "proxy.resource_monitors.fixed_heap" is there already`,
    ],
    [{ actions: [action('shrink_heap'), action('shrink_heap')] }, `${at}.actions[1].name: ${name} is there already`],
    [
      { actions: [action('shrink_heap', { triggers: [AT_90, AT_90] })] },
      `${at}.actions[0].triggers[1].name: "envoy.resource_monitors.fixed_heap" is a trigger already`,
    ],
    [
      { actions: [action('shrink_heap', {}, upsideDown)] },
      `${at}.actions[0].triggers[0].scaled: scaling_threshold 0.8 is not below saturation_threshold 0.8`,
    ],
    [
      { actions: [action('shrink_heap', { typed_config })] },
      `${at}.actions[0].typed_config.timer_scale_factors[1].timer: HTTP_DOWNSTREAM_STREAM_IDLE is there already`,
    ],
    [
      { actions: [action('reduce_timeouts')] },
      `${at}.actions[0]: "envoy.overload_actions.reduce_timeouts" needs typed_config, which says what may be shortened`,
    ],
    [
      { actions: [action('reset_high_memory_stream')] },
      `${at}.actions[0]: "envoy.overload_actions.reset_high_memory_stream" needs overload_manager.buffer_factory_config, which says what is expensive`,
    ],
  ];
  for (const [fields, fault] of cases)
    assert.ok(errors(fields).includes(fault), `${fault}\n${errors(fields).join('\n')}`);
  assert.ok(
    errors({ actions: [action('shrink_heap', { typed_config })] }).includes(
      `${at}.actions[0].typed_config: ${name} has no settings`,
    ),
  );
});

test('a listener that bypasses the overload manager is not limited by it either', () => {
  const settingsOf = (fields: JsonObject) =>
    mustLoad(withListeners(listenerWith([tcpFilter({})], fields))).listeners[0]!;
  const { bypassesOverload, ignoresGlobalLimit } = settingsOf({ bypass_overload_manager: true });
  assert.deepEqual({ bypassesOverload, ignoresGlobalLimit }, { bypassesOverload: true, ignoresGlobalLimit: true });
  assert.equal(settingsOf({}).bypassesOverload, false);
});
