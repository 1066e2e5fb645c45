// GrpcService.GoogleGrpc messages → a gRPC server that no cluster names: where it is, and how connections to it are secured.
// Names are those of gRPC ("gRPC Name Resolution").

import type { DnsResolverSettings, GrpcTargetSettings, UpstreamTlsSettings } from '../../snapshot/index.ts';
import type { GrpcService_GoogleGrpc } from '../proto/generated/messages.ts';
import { fieldPath, itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';
import { SYSTEM_RESOLVER } from './dns-discovery.ts';
import type { FaultSink } from './fault-sink.ts';
import type { MetadataField } from './grpc-metadata.ts';
import { loadCertificate } from './tls/certificate.ts';
import { convertParameters } from './tls/parameters.ts';
import { brokenPem, parseCertificates } from './tls/pem.ts';
import { convertSource, readSource, sourceName } from './tls/source.ts';

/** What a conversion of such a service needs. */
export interface TargetConversion {
  readonly faults: FaultSink;
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  readonly defaultResolver?: DnsResolverSettings | undefined;
}

const DEFAULT_PORT = 443;
const DEFAULT_FACTORY = 'envoy.grpc_credentials.default';
const KEEPALIVE_TIME = 'grpc.keepalive_time_ms';
const KEEPALIVE_TIMEOUT = 'grpc.keepalive_timeout_ms';
const MESSAGE_LENGTH = 'grpc.max_receive_message_length';
const AUTHORITY = 'grpc.default_authority';
const TLS_NAME = 'grpc.ssl_target_name_override';
const KNOWN_ARGS: ReadonlySet<string> = new Set([
  KEEPALIVE_TIME,
  KEEPALIVE_TIMEOUT,
  MESSAGE_LENGTH,
  AUTHORITY,
  TLS_NAME,
]);
/** gRPC's own. */
const DEFAULT_KEEPALIVE_TIMEOUT_MS = 20_000;

/** Where a server is, as gRPC says it. @returns undefined for what is no such name. */
export function parseTarget(uri: string): GrpcTargetSettings['place'] | undefined {
  const address = /^(ipv4|ipv6):(.+)$/.exec(uri);
  if (address !== null) {
    const hosts = address[2]!.split(',').map((text) => hostAndPort(text));
    return hosts.every((host) => host !== undefined) ? { kind: 'hosts', hosts } : undefined;
  }
  const unix = /^unix:(?:\/\/(?=\/))?(.+)$/.exec(uri)?.[1];
  if (unix !== undefined) return { kind: 'pipe', path: unix };
  const abstract = /^unix-abstract:(.+)$/.exec(uri)?.[1];
  if (abstract !== undefined) return { kind: 'pipe', path: `@${abstract}` };
  // The authority in front of a name says whose resolver is to be asked; there is none but that of the system.
  const name = uri.startsWith('dns:///') ? uri.slice('dns:///'.length) : /^(?:dns:)?([^/]+)$/.exec(uri)?.[1];
  const host = name === undefined ? undefined : hostAndPort(name);
  return host && { kind: 'hosts', hosts: [host] };
}

function hostAndPort(text: string): { readonly host: string; readonly port: number } | undefined {
  const bare = /^[0-9a-f]*:[0-9a-f:]*:[0-9a-f:.]*$/i.test(text) ? [text, text, undefined] : undefined;
  const [, host, digits] =
    bare ?? /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(text) ?? /^([^:[\]]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = digits === undefined ? DEFAULT_PORT : Number(digits);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

export interface ConvertedTarget {
  readonly target: GrpcTargetSettings;
  /** Of the requests. */
  readonly authority: string;
  /** Said with each call. */
  readonly metadata: readonly MetadataField[];
  /** Of a message; 0 for what this build allows. */
  readonly maxMessageBytes: number;
}

/** @param at path of the message. @returns undefined where a fault says why. */
export function convertGrpcTarget(
  message: GrpcService_GoogleGrpc,
  at: string,
  conversion: TargetConversion,
): ConvertedTarget | undefined {
  const { faults } = conversion;
  const { target_uri: uri, credentials_factory_name: factory } = message;
  const place = parseTarget(uri);
  const field = fieldPath(at, 'target_uri');
  if (place === undefined)
    faults.error(field, `${quote(uri)} is no name of a server: host:port, dns:///host:port, unix:path`);
  if (factory !== '' && factory !== DEFAULT_FACTORY)
    faults.error(fieldPath(at, 'credentials_factory_name'), `${quote(factory)} is not known; say channel_credentials`);
  const tls = tlsOf(message, place, fieldPath(at, 'channel_credentials'), conversion);
  const metadata = tokens(message, tls !== null, fieldPath(at, 'call_credentials'), faults);
  for (const name of Object.keys(message.channel_args?.args ?? {}))
    if (!KNOWN_ARGS.has(name)) faults.warning(fieldPath(at, 'channel_args.args'), `${quote(name)} does nothing`);
  if (place === undefined || tls === undefined) return undefined;
  const { defaultResolver: resolver = SYSTEM_RESOLVER } = conversion;
  return {
    target: { place, resolver, tls, keepalive: keepaliveOf(message) },
    authority: textOf(message, AUTHORITY) ?? authorityOf(place),
    metadata,
    maxMessageBytes: Math.max(0, numberOf(message, MESSAGE_LENGTH) ?? 0),
  };
}

/** @returns null for plain connections, undefined where a fault says why. */
function tlsOf(
  message: GrpcService_GoogleGrpc,
  place: GrpcTargetSettings['place'] | undefined,
  at: string,
  conversion: TargetConversion,
): UpstreamTlsSettings | null | undefined {
  const ssl = message.channel_credentials?.ssl_credentials ?? null;
  if (ssl === null) return null;
  const { faults } = conversion;
  const field = (name: 'root_certs' | 'private_key' | 'cert_chain'): string => fieldPath(at, `ssl_credentials.${name}`);
  const roots = convertSource(ssl.root_certs, field('root_certs'), conversion);
  const chain = convertSource(ssl.cert_chain, field('cert_chain'), conversion);
  const key = convertSource(ssl.private_key, field('private_key'), conversion);
  const read = readSource(roots, field('root_certs'), faults)?.toString('latin1');
  const authorities = read === undefined ? undefined : parseCertificates(read);
  if (authorities !== undefined && 'brokenAt' in authorities) {
    faults.error(field('root_certs'), `${sourceName(roots)} ${brokenPem(authorities.brokenAt)}`);
    return undefined;
  }
  if (ssl.root_certs !== null && authorities === undefined) return undefined;
  const isClient = chain !== null || key !== null;
  const sources = { chain, key, password: null, pkcs12: null, ocspStaple: null };
  const certificate = isClient ? loadCertificate(sources, fieldPath(at, 'ssl_credentials'), faults) : undefined;
  if (isClient && certificate === undefined) return undefined;
  const [first] = place?.kind === 'hosts' ? place.hosts : [];
  return {
    files: [],
    ...convertParameters(null, at, faults),
    alpnProtocols: ['h2'],
    certificates: certificate === undefined ? [] : [certificate],
    validation: {
      sources: { trustedCa: roots, crl: null },
      trustedCa: authorities === undefined ? 'system' : authorities.join(''),
      crl: null,
      acceptsUntrusted: false,
      certificateHashes: [],
      spkiHashes: [],
      subjectAltNames: [],
    },
    keyLog: null,
    secrets: [],
    missingSecrets: [],
    serverName: textOf(message, TLS_NAME) ?? first?.host ?? 'localhost',
    usesHostname: false,
    // As gRPC does: the server is who was asked for.
    verifiesServerName: true,
    maxSessions: 1,
    allowsRenegotiation: false,
  };
}

/** A token in the clear would be anybody's. */
function tokens(
  { call_credentials: credentials }: GrpcService_GoogleGrpc,
  isSecured: boolean,
  at: string,
  faults: FaultSink,
): readonly MetadataField[] {
  return credentials.flatMap(({ access_token: token }, index) => {
    // Others have been refused by the support table.
    if (token === '') return [];
    const place = fieldPath(itemPath(at, index), 'access_token');
    if (!isSecured) faults.error(place, 'needs ssl_credentials: it would go in the clear');
    if (!/^[\x21-\x7e]+$/.test(token)) faults.error(place, 'has characters beyond printable ASCII');
    return [{ key: 'authorization', value: `Bearer ${token}` }];
  });
}

function keepaliveOf(message: GrpcService_GoogleGrpc): GrpcTargetSettings['keepalive'] {
  const intervalMs = numberOf(message, KEEPALIVE_TIME) ?? 0;
  // The greatest number there is stands for never.
  if (intervalMs <= 0 || intervalMs >= 2 ** 31 - 1) return null;
  return { intervalMs, timeoutMs: Math.max(1, numberOf(message, KEEPALIVE_TIMEOUT) ?? DEFAULT_KEEPALIVE_TIMEOUT_MS) };
}

function authorityOf(place: GrpcTargetSettings['place']): string {
  const [first] = place.kind === 'hosts' ? place.hosts : [];
  if (first === undefined) return 'localhost';
  const { host, port } = first;
  return `${host.includes(':') ? `[${host}]` : host}${port === DEFAULT_PORT ? '' : `:${port}`}`;
}

function textOf({ channel_args: args }: GrpcService_GoogleGrpc, name: string): string | undefined {
  return args?.args[name]?.string_value || undefined;
}

function numberOf({ channel_args: args }: GrpcService_GoogleGrpc, name: string): number | undefined {
  const value = args?.args[name];
  return value === undefined || value.value_specifier !== 'int_value' ? undefined : Number(value.int_value);
}
