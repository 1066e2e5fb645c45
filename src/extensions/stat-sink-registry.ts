// The sinks of statistics of this build as they run, on main; what their configurations mean is in control-registry.ts. A sink
// that no bootstrap asks for is not loaded.

import type { StatSinkSettings } from '../config/index.ts';
import type { CreateStatSink, EventStream, StatSinkKinds } from '../control-plane/index.ts';

const KINDS: Readonly<Record<string, () => Promise<CreateStatSink | CreateStatSink<EventStream>>>> = {
  'stat_sinks.dog_statsd': async () => (await import('./stat_sinks/dog_statsd/sink.ts')).createDogStatsdSink,
  'stat_sinks.graphite_statsd': async () =>
    (await import('./stat_sinks/graphite_statsd/sink.ts')).createGraphiteStatsdSink,
  'stat_sinks.hystrix': async () => (await import('./stat_sinks/hystrix/sink.ts')).createHystrixSink,
  'stat_sinks.metrics_service': async () =>
    (await import('./stat_sinks/metrics_service/sink.ts')).createMetricsServiceSink,
  'stat_sinks.open_telemetry': async () =>
    (await import('./stat_sinks/open_telemetry/sink.ts')).createOpenTelemetrySink,
  'stat_sinks.statsd': async () => (await import('./stat_sinks/statsd/sink.ts')).createStatsdSink,
};

/** The code of the sinks that are asked for. */
export async function loadStatSinkKinds(sinks: readonly StatSinkSettings[]): Promise<StatSinkKinds> {
  const names = new Set(sinks.map(({ name }) => name));
  return new Map(await Promise.all([...names].map(async (name) => [name, await KINDS[name]!()] as const)));
}
