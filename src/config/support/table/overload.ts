// Support rows of the overload manager.

import { LOAD_SHED_POINTS, SCALED_TIMEOUTS } from '../../../base/overload-names.ts';
import { extensions, onlyElseWarned, rejected, type SupportTable, settingsOf, supported } from '../verdict.ts';
import { READ_AS_TYPED } from './extensions.ts';

const MONITORS = 'proxy.extensions.resource_monitors';
const FIXED_HEAP = `${MONITORS}.fixed_heap.v3.FixedHeapConfig`;
const INJECTED_RESOURCE = `${MONITORS}.injected_resource.v3.InjectedResourceConfig`;
const CONNECTIONS = `${MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig`;
const GROUP_MEMORY = `${MONITORS}.cgroup_memory.v3.CgroupMemoryConfig`;
const TIMERS = 'proxy.config.overload.v3.ScaleTimersOverloadActionConfig';

export const OVERLOAD_SUPPORT: SupportTable = {
  'proxy.config.overload.v3.OverloadManager': {
    otherwise: rejected(),
    fields: {
      refresh_interval: supported(),
      resource_monitors: supported(),
      actions: supported(),
      buffer_factory_config: supported('says from when on a stream is expensive'),
      loadshed_points: supported(`of ${LOAD_SHED_POINTS.join(', ')}; others are warned of`),
    },
  },
  'proxy.config.overload.v3.ResourceMonitor': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      config: supported(READ_AS_TYPED),
      typed_config: extensions([FIXED_HEAP, INJECTED_RESOURCE, CONNECTIONS, GROUP_MEMORY]),
    },
  },
  [FIXED_HEAP]: {
    otherwise: rejected(),
    fields: { max_heap_size_bytes: supported('`allocated` of `/memory` is what counts') },
  },
  [INJECTED_RESOURCE]: {
    otherwise: rejected(),
    fields: { filename: supported('read with each refresh') },
  },
  [CONNECTIONS]: {
    otherwise: rejected(),
    fields: {
      max_active_downstream_connections: supported(
        'goes before the runtime value `overload.global_downstream_max_connections`; triggers may name it, too',
      ),
    },
  },
  [GROUP_MEMORY]: { otherwise: rejected(), fields: { max_memory_bytes: supported() } },
  'proxy.config.overload.v3.OverloadAction': {
    otherwise: rejected(),
    fields: { name: supported(), triggers: supported(), typed_config: settingsOf([TIMERS]) },
  },
  [TIMERS]: { otherwise: rejected(), fields: { timer_scale_factors: supported() } },
  [`${TIMERS}.ScaleTimer`]: {
    otherwise: rejected(),
    fields: {
      timer: onlyElseWarned(SCALED_TIMEOUTS, 'there is no such timeout'),
      min_timeout: supported(),
      min_scale: supported(),
    },
  },
  'proxy.config.overload.v3.LoadShedPoint': {
    otherwise: rejected(),
    fields: { name: supported(), triggers: supported() },
  },
  'proxy.config.overload.v3.Trigger': {
    otherwise: rejected(),
    fields: { name: supported(), threshold: supported(), scaled: supported() },
  },
  'proxy.config.overload.v3.ThresholdTrigger': { otherwise: rejected(), fields: { value: supported() } },
  'proxy.config.overload.v3.ScaledTrigger': {
    otherwise: rejected(),
    fields: { scaling_threshold: supported(), saturation_threshold: supported() },
  },
  'proxy.config.overload.v3.BufferFactoryConfig': {
    otherwise: rejected(),
    fields: { minimum_account_to_track_power_of_two: supported() },
  },
};
