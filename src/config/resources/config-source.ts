// ConfigSource message → where resources come from that may change while the proxy runs.

import path from 'node:path';
import type {
  ClusterDemandSettings,
  ConfigSourceSettings,
  GrpcSourceSettings,
  ManagementServerSettings,
  RestSourceSettings,
} from '../../snapshot/index.ts';
import { ApiConfigSource_ApiType, ApiVersion } from '../proto/generated/enums.ts';
import type { Generation } from '../proto/message-names.ts';
import { fieldPath, itemPath } from '../source/field-path.ts';
import { enumName } from './enum-name.ts';
import type { FaultSink } from './fault-sink.ts';
import { initialMetadata } from './grpc-metadata.ts';
import { convertGrpcTarget, type TargetConversion } from './grpc-target.ts';
import type { ApiConfigSource, ConfigSource, GrpcService } from './messages.ts';
import type { SourceContext } from './source-context.ts';
import { durationMsOr, valueOr } from './units.ts';

const DEFAULT_FETCH_TIMEOUT_MS = 15_000;

const DEFAULT_REQUEST_TIMEOUT_MS = 1_000;

const DEFAULT_BURST = 100;
const DEFAULT_PER_SECOND = 10;

/** What a conversion of sources needs; every other conversion has it. */
export interface SourceConversion extends TargetConversion {
  readonly clusters: { checkPresence(name: string, at: string, faults: FaultSink): void };
  readonly sources?: SourceContext | undefined;
}

/** @param at path of the message. @returns undefined where a fault says why. */
export function convertConfigSource(
  source: ConfigSource,
  at: string,
  conversion: SourceConversion,
): ConfigSourceSettings | undefined {
  const { sources: { generation } = NO_SOURCES } = conversion;
  const origin = originOf(source, at, conversion);
  if (origin === undefined) return undefined;
  return {
    origin,
    resourceGeneration: generationOf(source.resource_api_version, generation),
    initialFetchTimeoutMs: durationMsOr(source.initial_fetch_timeout, DEFAULT_FETCH_TIMEOUT_MS),
  };
}

/** For resources that are asked for one by one, as requests want them. @returns undefined where a fault says why. */
export function convertIncrementalSource(
  source: ConfigSource,
  at: string,
  conversion: SourceConversion,
): ConfigSourceSettings | undefined {
  const settings = convertConfigSource(source, at, conversion);
  if (settings === undefined) return undefined;
  const { origin } = settings;
  const { sources = NO_SOURCES, faults } = conversion;
  const tellsChanges =
    origin.kind === 'grpc' ? origin.form === 'changes' : origin.kind === 'ads' && sources.aggregatesChanges;
  if (tellsChanges) return settings;
  faults.error(at, 'is asked for one name after the other, which only DELTA_GRPC can do');
  return undefined;
}

/** @param at path of the source. @returns null where a fault says why. */
export function convertClusterDemand(
  source: ConfigSource,
  at: string,
  timeoutMs: number,
  conversion: SourceConversion,
): ClusterDemandSettings | null {
  const settings = convertIncrementalSource(source, at, conversion);
  return settings === undefined ? null : { source: settings, timeoutMs };
}

const NO_SOURCES: SourceContext = { generation: 'v3', isAggregated: false };

function originOf(
  { path: file, path_config_source: settings, ads, api_config_source: api }: ConfigSource,
  at: string,
  conversion: SourceConversion,
): ConfigSourceSettings['origin'] | undefined {
  const { sources: { isAggregated } = NO_SOURCES, faults } = conversion;
  if (ads !== null) {
    if (!isAggregated)
      faults.error(fieldPath(at, 'ads'), 'needs dynamic_resources.ads_config, which says whose stream it is');
    return isAggregated ? { kind: 'ads' } : undefined;
  }
  if (api !== null) {
    const where = fieldPath(at, 'api_config_source');
    return api.api_type === ApiConfigSource_ApiType.REST
      ? convertRestSource(api, where, conversion)
      : convertApiSource(api, where, conversion);
  }
  if (settings === null && file === '') return undefined;
  const folder = settings?.watched_directory?.path ?? '';
  return {
    kind: 'file',
    path: path.resolve(settings?.path ?? file),
    watchedFolder: folder === '' ? undefined : path.resolve(folder),
  };
}

const FORMS: ReadonlyMap<number, GrpcSourceSettings['form']> = new Map([
  [ApiConfigSource_ApiType.GRPC, 'state'],
  [ApiConfigSource_ApiType.DELTA_GRPC, 'changes'],
]);
const MOST_SERVERS = 2;

function convertRestSource(
  source: ApiConfigSource,
  at: string,
  { faults, clusters, sources: { generation } = NO_SOURCES }: SourceConversion,
): RestSourceSettings | undefined {
  const { cluster_names: names, grpc_services: services, refresh_delay: delay } = source;
  const [cluster = ''] = names;
  const field = fieldPath(at, 'cluster_names');
  if (names.length === 1) clusters.checkPresence(cluster, itemPath(field, 0), faults);
  else faults.error(field, `REST needs one, and there are ${names.length}`);
  if (services.length > 0) faults.error(fieldPath(at, 'grpc_services'), 'is for GRPC; REST reads cluster_names');
  const refreshDelayMs = durationMsOr(delay, 0);
  const requestTimeoutMs = durationMsOr(source.request_timeout, DEFAULT_REQUEST_TIMEOUT_MS);
  if (delay === null) faults.error(fieldPath(at, 'refresh_delay'), 'REST needs one');
  else if (refreshDelayMs < 1) faults.error(fieldPath(at, 'refresh_delay'), 'is not above 0s');
  if (source.rate_limit_settings !== null)
    faults.warning(fieldPath(at, 'rate_limit_settings'), 'does nothing: REST asks as often as refresh_delay says');
  if (source.set_node_on_first_message_only)
    faults.warning(
      fieldPath(at, 'set_node_on_first_message_only'),
      'does nothing: each question of REST is a first one',
    );
  const transportGeneration = generationOf(source.transport_api_version, generation);
  return { kind: 'rest', cluster, transportGeneration, refreshDelayMs, requestTimeoutMs };
}

/** Of a stream. @param at path of the message. @returns undefined where a fault says why. */
export function convertApiSource(
  source: ApiConfigSource,
  at: string,
  conversion: SourceConversion,
): GrpcSourceSettings | undefined {
  const { faults, sources: { generation } = NO_SOURCES } = conversion;
  const { api_type: number, grpc_services: services, rate_limit_settings: rate } = source;
  const type = enumName(ApiConfigSource_ApiType, number);
  const form = FORMS.get(number);
  if (form === undefined) {
    const reason = number === ApiConfigSource_ApiType.REST ? 'has no streams' : 'is not spoken by this build';
    faults.error(fieldPath(at, 'api_type'), `${type} ${reason}: use GRPC or DELTA_GRPC`);
    return undefined;
  }
  const field = fieldPath(at, 'grpc_services');
  if (services.length === 0) faults.error(field, `${type} needs one`);
  if (services.length > MOST_SERVERS)
    faults.error(field, `has ${services.length} items, more than a server and its stand-in`);
  if (source.cluster_names.length > 0)
    faults.error(fieldPath(at, 'cluster_names'), `is for REST; ${type} reads grpc_services`);
  for (const name of ['refresh_delay', 'request_timeout'] as const)
    if (source[name] !== null)
      faults.warning(fieldPath(at, name), `does nothing: it is for REST, and ${type} has a stream`);
  const servers = services.map((service, index) => convertServer(service, itemPath(field, index), conversion));
  if (!servers.every((server) => server !== undefined) || servers.length === 0) return undefined;
  return {
    kind: 'grpc',
    form,
    servers,
    transportGeneration: generationOf(source.transport_api_version, generation),
    nodeOnFirstMessageOnly: source.set_node_on_first_message_only,
    rateLimit:
      rate === null
        ? undefined
        : { burst: valueOr(rate.max_tokens, DEFAULT_BURST), perSecond: valueOr(rate.fill_rate, DEFAULT_PER_SECOND) },
  };
}

/** A stream to a service that brings no resources. */
export type ServiceStreamSettings = Omit<GrpcSourceSettings, 'kind' | 'form' | 'rateLimit'>;

/** @param at as convertApiSource. @returns as well. */
export function convertServiceStream(
  source: ApiConfigSource,
  at: string,
  conversion: SourceConversion,
): ServiceStreamSettings | undefined {
  const converted = convertApiSource(source, at, conversion);
  if (converted === undefined) return undefined;
  const { servers, transportGeneration, nodeOnFirstMessageOnly, rateLimit } = converted;
  if (rateLimit !== undefined) {
    conversion.faults.warning(fieldPath(at, 'rate_limit_settings'), 'ignored: the server says how often it is told');
  }
  return { servers, transportGeneration, nodeOnFirstMessageOnly };
}

function convertServer(
  service: GrpcService,
  at: string,
  conversion: SourceConversion,
): ManagementServerSettings | undefined {
  const { faults, clusters } = conversion;
  const { envoy_grpc: target, google_grpc: outside } = service;
  if (outside !== null) {
    const converted = convertGrpcTarget(outside, fieldPath(at, 'google_grpc'), conversion);
    const metadata = initialMetadata(service, at, faults);
    return converted && { cluster: outside.target_uri, ...converted, metadata: [...metadata, ...converted.metadata] };
  }
  // Without any the field rules have a fault.
  if (target === null) return undefined;
  clusters.checkPresence(target.cluster_name, fieldPath(at, 'envoy_grpc.cluster_name'), faults);
  return {
    cluster: target.cluster_name,
    authority: target.authority || target.cluster_name,
    metadata: initialMetadata(service, at, faults),
    maxMessageBytes: valueOr(target.max_receive_message_length, 0),
  };
}

function generationOf(version: ConfigSource['resource_api_version'], otherwise: Generation): Generation {
  if (version === ApiVersion.V2) return 'v2';
  return version === ApiVersion.V3 ? 'v3' : otherwise;
}
