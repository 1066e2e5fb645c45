// Bytes in, validated settings and every fault out: the only door to configuration for serving, for
// validating and for the library.

export type {
  AdminSettings,
  BootstrapConfig,
  FixedStatTag,
  LoadBootstrapInput,
  LoadBootstrapResult,
  NodeSettings,
} from './bootstrap/bootstrap-config.ts';
export { loadBootstrap, prepareLoading } from './bootstrap/load.ts';
export type { RuntimeLayerSettings } from './bootstrap/runtime.ts';
export { type ConfigFault, type FaultSeverity, formatFault, hasErrors } from './fault.ts';
export { int64ToNumber as toNumber } from './proto/int64.ts';
export { convertAddress } from './resources/address.ts';
export type { Conversion } from './resources/conversion.ts';
export type { HttpFilterConverters } from './resources/http-filter.ts';
export type {
  AddressMessage,
  DogStatsdSink,
  GraphiteStatsdSink,
  HealthCheckFilterMessage,
  HttpTapMessage,
  StatsdSink,
} from './resources/messages.ts';
export { convertHeaderMatchers } from './resources/route-match.ts';
export type { StatSinkManifest, StatSinkManifests, StatSinkSettings } from './resources/stat-sink.ts';
export { durationMsOr, valueOr } from './resources/units.ts';
export {
  type MessageSupport,
  only,
  rejected,
  type SupportTable,
  supported,
  supportedAs,
  supportedWhole,
  warned,
} from './support/verdict.ts';
export { encodeDelimited } from './tap/encode.ts';
export { readTapOrder, type TapFormat, type TapOrder } from './tap/tap-request.ts';
