// Inputs of decision trees that a connection has, read from it as it is when they are asked.

import { utf8Bytes } from '../../base/byte-text.ts';
import { parseIp } from '../../base/ip-number.ts';
import { jsonAt } from '../../base/json.ts';
import type { ConnectionInputKind, MatchInput, Metadata } from '../../snapshot/index.ts';
import type { DownstreamFacts, Endpoint } from '../format/facts.ts';
import type { InputReaders, ReadInput } from './match-tree.ts';

const READERS: Readonly<Record<ConnectionInputKind, ReadInput<DownstreamFacts>>> = {
  'destination-ip': ({ local }) => local.ip || undefined,
  'destination-port': ({ local }) => port(local),
  'source-ip': ({ remote }) => remote.ip || undefined,
  'source-port': ({ remote }) => port(remote),
  'direct-source-ip': ({ directRemote }) => directRemote.ip || undefined,
  'source-type': ({ remote, local }) => sourceType(remote.ip, local.ip),
  'server-name': ({ requestedServerName }) => requestedServerName || undefined,
  'transport-protocol': ({ transportProtocol }) => transportProtocol,
  'application-protocol': ({ applicationProtocols, tls }) =>
    quoted(tls !== null && tls.protocol !== '' ? [tls.protocol] : applicationProtocols),
  'uri-san': ({ tls }) => listed(tls?.peer?.names.uri),
  'dns-san': ({ tls }) => listed(tls?.peer?.names.dns),
  subject: ({ tls }) => tls?.peer?.subject || undefined,
};

/** Of a kind that only requests have there is nothing. */
export const CONNECTION_INPUTS: InputReaders<DownstreamFacts> = {
  text: readerOf,
  metadata: ({ metadata }) => metadata,
};

function readerOf(input: MatchInput): ReadInput<DownstreamFacts> {
  switch (input.kind) {
    case 'constant':
      return constant(input.value);
    case 'filter-state':
      return (connection) => stateText(connection.state(input.key));
    case 'dynamic-metadata':
      return ({ metadata }) => metadataText(metadata, input);
    case 'request-header':
    case 'query-parameter':
    case 'response-header':
    case 'response-status':
    case 'response-status-class':
      return () => undefined;
    default:
      return READERS[input.kind];
  }
}

export function constant(value: string | null): () => string | undefined {
  const text = value === null ? undefined : utf8Bytes(value);
  return () => text;
}

/** Filters say it as it is, and trees compare bytes. */
export function stateText(text: string | undefined): string | undefined {
  return text === undefined ? undefined : utf8Bytes(text);
}

/** Of texts alone; numbers and others are for tests of values. */
export function metadataText(
  metadata: Metadata | undefined,
  { namespace, path }: Extract<MatchInput, { kind: 'dynamic-metadata' }>,
): string | undefined {
  const value = jsonAt(metadata?.[namespace], path);
  return typeof value === 'string' ? utf8Bytes(value) : undefined;
}

/** @param local address that the client meant to reach. @returns `local` for a client on this machine. */
export function sourceType(remote: string, local: string): string | undefined {
  return remote !== '' && (remote === local || parseIp(remote)?.isLoopback === true) ? 'local' : undefined;
}

function port(end: Endpoint): string | undefined {
  return end.port === 0 ? undefined : String(end.port);
}

function quoted(protocols: readonly string[]): string | undefined {
  return protocols.length === 0 ? undefined : protocols.map((each) => `'${each}'`).join(',');
}

function listed(names: readonly string[] | undefined): string | undefined {
  return names === undefined || names.length === 0 ? undefined : names.join(',');
}
