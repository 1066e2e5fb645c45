// OverloadManager message → OverloadSettings. Names may begin with `envoy.` or `proxy.`; settings have the second.

import {
  LOAD_SHED_POINTS,
  type LoadShedPointName,
  SCALED_TIMEOUTS,
  type ScaledTimeoutName,
} from '../../base/overload-names.ts';
import type { TimeoutFloor } from '../../snapshot/index.ts';
import { ScaleTimersOverloadActionConfig_TimerType as TimerType } from '../proto/generated/enums.ts';
import type {
  CgroupMemoryConfig,
  DownstreamConnectionsConfig,
  FixedHeapConfig,
  InjectedResourceConfig,
  OverloadAction,
  OverloadManager,
  ResourceMonitor,
  ScaleTimersOverloadActionConfig,
  Trigger,
} from '../proto/generated/messages.ts';
import { int64ToNumber } from '../proto/int64.ts';
import { openExtension } from '../resources/extension.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import { durationMs, durationMsOr } from '../resources/units.ts';
import { quote } from '../source/node.ts';

export const OVERLOAD_ACTIONS = [
  'stop_accepting_requests',
  'disable_http_keepalive',
  'stop_accepting_connections',
  'reject_incoming_connections',
  'shrink_heap',
  'reduce_timeouts',
  'reset_high_memory_stream',
] as const;
export type OverloadActionName = (typeof OVERLOAD_ACTIONS)[number];

export type MonitoredResource =
  | { readonly kind: 'heap'; readonly maxBytes: number }
  /** A number from 0 to 1 in a file. */
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'connections'; readonly max: number }
  /** Of the control group; `maxBytes` is infinite where only the limit of the group counts. */
  | { readonly kind: 'group-memory'; readonly maxBytes: number };

export interface ResourceMonitorSettings {
  readonly name: string;
  readonly resource: MonitoredResource;
}

/** From 0 at and below `fromPressure` to 1 at `toPressure`; on and off where they are equal. */
export interface TriggerSettings {
  readonly monitor: string;
  readonly fromPressure: number;
  readonly toPressure: number;
}

export interface OverloadActionSettings {
  readonly name: OverloadActionName;
  readonly triggers: readonly TriggerSettings[];
}

export interface LoadShedSettings {
  readonly name: LoadShedPointName;
  readonly triggers: readonly TriggerSettings[];
}

export interface OverloadSettings {
  readonly refreshIntervalMs: number;
  readonly monitors: readonly ResourceMonitorSettings[];
  readonly actions: readonly OverloadActionSettings[];
  readonly shedPoints: readonly LoadShedSettings[];
  readonly timeoutFloors: Readonly<Partial<Record<ScaledTimeoutName, TimeoutFloor>>>;
  /** Streams that hold fewer bytes are never reset for what they hold. */
  readonly expensiveFromBytes: number;
}

const AT = 'overload_manager';
const MONITORS = 'proxy.extensions.resource_monitors';
const TIMERS_TYPE = 'proxy.config.overload.v3.ScaleTimersOverloadActionConfig';
const DEFAULT_REFRESH_INTERVAL_MS = 1000;
const ACTION_PREFIX = 'proxy.overload_actions.';
const POINT_PREFIX = 'proxy.load_shed_points.';

/** @returns undefined where there is no overload manager. */
export function convertOverload(message: OverloadManager | null, faults: FaultSink): OverloadSettings | undefined {
  if (message === null) return undefined;
  const monitors = message.resource_monitors.flatMap(convertMonitor);
  checkUnique(message.resource_monitors, 'resource_monitors', faults);
  checkUnique(message.actions, 'actions', faults);
  checkUnique(message.loadshed_points, 'loadshed_points', faults);
  const known = new Set(message.resource_monitors.map(({ name }) => canonicalName(name)));
  const refreshIntervalMs = durationMsOr(message.refresh_interval, DEFAULT_REFRESH_INTERVAL_MS);
  if (refreshIntervalMs <= 0) faults.error(`${AT}.refresh_interval`, 'must be longer than 0s');
  return {
    refreshIntervalMs,
    monitors,
    actions: message.actions.flatMap((action, index) => convertAction(action, index, known, message, faults)),
    shedPoints: message.loadshed_points.flatMap(({ name, triggers }, index) => {
      const at = `${AT}.loadshed_points[${index}]`;
      const converted = convertTriggers(triggers, at, known, faults);
      const point = withoutPrefix(name, POINT_PREFIX);
      if (isOneOf(LOAD_SHED_POINTS, point)) return { name: point, triggers: converted };
      faults.warning(`${at}.name`, `${quote(name)} is not supported by this build; nothing is shed there`);
      return [];
    }),
    timeoutFloors: convertFloors(message.actions, faults),
    expensiveFromBytes: 2 ** (message.buffer_factory_config?.minimum_account_to_track_power_of_two ?? 0),
  };
}

function canonicalName(name: string): string {
  return name.replace(/^envoy\./, 'proxy.');
}

function withoutPrefix(name: string, prefix: string): string {
  const canonical = canonicalName(name);
  return canonical.startsWith(prefix) ? canonical.slice(prefix.length) : '';
}

function isOneOf<Name extends string>(names: readonly Name[], name: string): name is Name {
  return (names as readonly string[]).includes(name);
}

function checkUnique(named: readonly { readonly name: string }[], field: string, faults: FaultSink): void {
  const seen = new Set<string>();
  for (const [index, { name }] of named.entries()) {
    const canonical = canonicalName(name);
    if (seen.has(canonical)) faults.error(`${AT}.${field}[${index}].name`, `${quote(name)} is there already`);
    seen.add(canonical);
  }
}

/** Monitors of other types have been refused by the support table. */
function convertMonitor({ name, typed_config }: ResourceMonitor): readonly ResourceMonitorSettings[] {
  const opened = openExtension(typed_config);
  const resource = opened && resourceOf(opened.typeName, opened.message);
  return resource === undefined ? [] : [{ name: canonicalName(name), resource }];
}

function resourceOf(typeName: string, message: object): MonitoredResource | undefined {
  switch (typeName) {
    case `${MONITORS}.fixed_heap.v3.FixedHeapConfig`:
      return { kind: 'heap', maxBytes: int64ToNumber((message as FixedHeapConfig).max_heap_size_bytes) };
    case `${MONITORS}.injected_resource.v3.InjectedResourceConfig`:
      return { kind: 'file', path: (message as InjectedResourceConfig).filename };
    case `${MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig`: {
      const { max_active_downstream_connections: max } = message as DownstreamConnectionsConfig;
      return { kind: 'connections', max: int64ToNumber(max) };
    }
    case `${MONITORS}.cgroup_memory.v3.CgroupMemoryConfig`: {
      const maxBytes = int64ToNumber((message as CgroupMemoryConfig).max_memory_bytes);
      return { kind: 'group-memory', maxBytes: maxBytes || Number.POSITIVE_INFINITY };
    }
    default:
      return undefined;
  }
}

function convertAction(
  { name, triggers, typed_config }: OverloadAction,
  index: number,
  monitors: ReadonlySet<string>,
  { buffer_factory_config: tracking }: OverloadManager,
  faults: FaultSink,
): readonly OverloadActionSettings[] {
  const at = `${AT}.actions[${index}]`;
  const converted = convertTriggers(triggers, at, monitors, faults);
  const action = withoutPrefix(name, ACTION_PREFIX);
  if (!isOneOf(OVERLOAD_ACTIONS, action)) {
    // Without a name, the rules of the schema have said so.
    const known = OVERLOAD_ACTIONS.join(', ');
    if (name !== '') faults.error(`${at}.name`, `${quote(name)} is none of ${ACTION_PREFIX}{${known}}`);
    return [];
  }
  if (action === 'reduce_timeouts') {
    if (typed_config === null) faults.error(at, `${quote(name)} needs typed_config, which says what may be shortened`);
  } else if (typed_config !== null) {
    faults.error(`${at}.typed_config`, `${quote(name)} has no settings`);
  }
  if (action === 'reset_high_memory_stream' && tracking === null) {
    faults.error(at, `${quote(name)} needs ${AT}.buffer_factory_config, which says what is expensive`);
  }
  return [{ name: action, triggers: converted }];
}

function convertTriggers(
  triggers: readonly Trigger[],
  at: string,
  monitors: ReadonlySet<string>,
  faults: FaultSink,
): readonly TriggerSettings[] {
  const seen = new Set<string>();
  return triggers.map(({ name, threshold, scaled }, index) => {
    const triggerAt = `${at}.triggers[${index}]`;
    const monitor = canonicalName(name);
    if (name !== '' && !monitors.has(monitor))
      faults.error(`${triggerAt}.name`, `no resource monitor is ${quote(name)}`);
    if (seen.has(monitor)) faults.error(`${triggerAt}.name`, `${quote(name)} is a trigger already`);
    seen.add(monitor);
    if (scaled === null) {
      const pressure = threshold?.value ?? 0;
      return { monitor, fromPressure: pressure, toPressure: pressure };
    }
    const { scaling_threshold: fromPressure, saturation_threshold: toPressure } = scaled;
    if (fromPressure >= toPressure) {
      const what = `scaling_threshold ${fromPressure} is not below saturation_threshold ${toPressure}`;
      faults.error(`${triggerAt}.scaled`, what);
    }
    return { monitor, fromPressure, toPressure };
  });
}

function convertFloors(actions: readonly OverloadAction[], faults: FaultSink): OverloadSettings['timeoutFloors'] {
  const floors: Partial<Record<ScaledTimeoutName, TimeoutFloor>> = {};
  for (const [index, { typed_config }] of actions.entries()) {
    const opened = openExtension(typed_config);
    if (opened?.typeName !== TIMERS_TYPE) continue;
    const { timer_scale_factors: factors } = opened.message as ScaleTimersOverloadActionConfig;
    for (const [factorIndex, { timer, min_timeout: least, min_scale: part }] of factors.entries()) {
      const name = SCALED_TIMEOUTS.find((each) => TimerType[each] === timer);
      // The others have been warned of by the support table.
      if (name === undefined) continue;
      const at = `${AT}.actions[${index}].typed_config.timer_scale_factors[${factorIndex}].timer`;
      if (floors[name] !== undefined) faults.error(at, `${name} is there already`);
      floors[name] = { minMs: least === null ? 0 : durationMs(least), minScale: (part?.value ?? 0) / 100 };
    }
  }
  return floors;
}
