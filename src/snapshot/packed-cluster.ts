// Clusters on their way to the workers: text in memory that all of them share, made into objects by the worker that has use
// for it. Most clusters of a large configuration see no traffic in most workers, and cost them a name and a place.

import type { Address } from '../base/address.ts';
import type { ClusterSnapshot, HostSnapshot, TransportSocketMatch } from './cluster.ts';
import type { EndpointSettings, HostSettings } from './endpoint.ts';
import { type PackedTls, packTls, unpackTls } from './packed-tls.ts';

export interface PackedCluster {
  readonly name: string;
  readonly hostCount: number;
  /** Holds other clusters, too. */
  readonly bytes: SharedArrayBuffer;
  readonly start: number;
  readonly end: number;
}

/** Memory is taken for so much at once, and given back when none of what it holds is in use any more. */
const CHUNK_BYTES = 1024 * 1024;

/** Hosts of one cluster mostly differ in nothing but their addresses: what else they say is kept once for those in a row. */
interface PackedText extends Omit<ClusterSnapshot, 'hosts' | 'settings'> {
  readonly settings: PackedSettings;
  readonly endpoints: readonly EndpointSettings[];
  readonly hosts: readonly PackedHost[];
}

interface PackedSettings extends Omit<ClusterSnapshot['settings'], 'tls' | 'transportSocketMatches'> {
  readonly tls?: PackedTls;
  readonly transportSocketMatches?: readonly PackedMatch[];
}

interface PackedMatch extends Omit<TransportSocketMatch, 'tls'> {
  readonly tls?: PackedTls;
}

type PackedHost = readonly [
  endpoint: number,
  address: Address,
  recordAddress: number,
  statBlock: number,
  outlierBlock: number,
  rare?: RareFields,
];

/** What few hosts say of themselves. */
type RareFields = Omit<HostSettings, keyof EndpointSettings | 'address'>;

const RARE_FIELDS = Object.keys({
  logicalName: true,
  connectOrder: true,
  named: true,
} satisfies Record<keyof RareFields, true>) as (keyof RareFields)[];

const ENDPOINT_FIELDS = Object.keys({
  hostname: true,
  weight: true,
  locality: true,
  localityWeight: true,
  priority: true,
  canary: true,
  health: true,
  hashKey: true,
  subsetValues: true,
  metadata: true,
  check: true,
} satisfies Record<keyof EndpointSettings, true>) as (keyof EndpointSettings)[];

/** Looks at each cluster once, one after the other, so that they can be made on the way. */
export function packClusters(clusters: Iterable<ClusterSnapshot>): PackedCluster[] {
  const packed: PackedCluster[] = [];
  let texts: PackingText[] = [];
  let size = 0;
  for (const cluster of clusters) {
    const text = JSON.stringify(packedText(cluster));
    const byteLength = Buffer.byteLength(text);
    texts.push({ name: cluster.settings.name, hostCount: cluster.hosts.length, text, byteLength });
    size += byteLength;
    if (size < CHUNK_BYTES) continue;
    packed.push(...writeChunk(texts, size));
    texts = [];
    size = 0;
  }
  if (size > 0) packed.push(...writeChunk(texts, size));
  return packed;
}

/** The snapshot that was packed, made anew with each call. */
export function unpackCluster({ bytes, start, end }: PackedCluster): ClusterSnapshot {
  const text = Buffer.from(bytes, start, end - start).toString();
  const { endpoints, hosts, settings, ...cluster }: PackedText = JSON.parse(text);
  return { ...cluster, settings: unpackSettings(settings), hosts: hosts.map((host) => unpackHost(host, endpoints)) };
}

interface PackingText {
  readonly name: string;
  readonly hostCount: number;
  readonly text: string;
  readonly byteLength: number;
}

function writeChunk(texts: readonly PackingText[], size: number): PackedCluster[] {
  const bytes = new SharedArrayBuffer(size);
  const view = Buffer.from(bytes);
  let end = 0;
  return texts.map(({ name, hostCount, text, byteLength }) => {
    const start = end;
    end += byteLength;
    view.write(text, start);
    return { name, hostCount, bytes, start, end };
  });
}

function packSettings(settings: ClusterSnapshot['settings']): PackedSettings {
  const { tls, transportSocketMatches: matches, ...others } = settings;
  if (tls === undefined && matches === undefined) return others;
  return {
    ...others,
    ...(tls && { tls: packTls(tls) }),
    ...(matches && { transportSocketMatches: matches.map(packMatch) }),
  };
}

function packMatch({ tls, ...match }: TransportSocketMatch): PackedMatch {
  return tls === undefined ? match : { ...match, tls: packTls(tls) };
}

function unpackSettings(settings: PackedSettings): ClusterSnapshot['settings'] {
  const { tls, transportSocketMatches: matches, ...others } = settings;
  if (tls === undefined && matches === undefined) return others;
  return {
    ...others,
    ...(tls && { tls: unpackTls(tls) }),
    ...(matches && { transportSocketMatches: matches.map(unpackMatch) }),
  };
}

function unpackMatch({ tls, ...match }: PackedMatch): TransportSocketMatch {
  return tls === undefined ? match : { ...match, tls: unpackTls(tls) };
}

function packedText({ hosts, settings, ...cluster }: ClusterSnapshot): PackedText {
  const endpoints: EndpointSettings[] = [];
  let last: HostSnapshot | undefined;
  const packHost = (host: HostSnapshot): PackedHost => {
    if (last === undefined || !isSameEndpoint(host, last)) endpoints.push(endpointOf(host));
    last = host;
    const { address, recordAddress, statBlock, outlierBlock } = host;
    const endpoint = endpoints.length - 1;
    if (RARE_FIELDS.every((field) => host[field] === undefined)) {
      return [endpoint, address, recordAddress, statBlock, outlierBlock];
    }
    const rare = Object.fromEntries(RARE_FIELDS.map((field) => [field, host[field]]));
    return [endpoint, address, recordAddress, statBlock, outlierBlock, rare];
  };
  const packedHosts = hosts.map(packHost);
  return { ...cluster, settings: packSettings(settings), endpoints, hosts: packedHosts };
}

function isSameEndpoint(a: EndpointSettings, b: EndpointSettings): boolean {
  return ENDPOINT_FIELDS.every((field) => {
    if (a[field] === b[field]) return true;
    return typeof a[field] === 'object' && JSON.stringify(a[field]) === JSON.stringify(b[field]);
  });
}

function endpointOf(host: EndpointSettings): EndpointSettings {
  return Object.fromEntries(ENDPOINT_FIELDS.map((field) => [field, host[field]])) as unknown as EndpointSettings;
}

function unpackHost(
  [endpoint, address, recordAddress, statBlock, outlierBlock, rare]: PackedHost,
  endpoints: readonly EndpointSettings[],
): HostSnapshot {
  const places = { recordAddress, statBlock, outlierBlock };
  return { address, ...rare, ...endpoints[endpoint]!, ...places };
}
