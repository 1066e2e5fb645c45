// What decision trees look at: extensions → inputs.

import type { ConnectionInputKind, MatchInput } from '../../../snapshot/index.ts';
import type { MessageTypes } from '../../proto/generated/messages.ts';
import type { Conversion } from '../conversion.ts';
import { openExtension } from '../extension.ts';
import type { MatcherMessage } from './match-tree.ts';

type ExtensionMessage = NonNullable<MatcherMessage['matcher_tree']>['input'];

const COMMON = 'proxy.extensions.matching.common_inputs';
const NETWORK = `${COMMON}.network.v3`;
const SSL = `${COMMON}.ssl.v3`;
const HEADER = 'proxy.type.matcher.v3.HttpRequestHeaderMatchInput';
const QUERY = 'proxy.type.matcher.v3.HttpRequestQueryParamMatchInput';
const RESPONSE_HEADER = 'proxy.type.matcher.v3.HttpResponseHeaderMatchInput';
const STATUS = 'proxy.type.matcher.v3.HttpResponseStatusCodeMatchInput';
const STATUS_CLASS = 'proxy.type.matcher.v3.HttpResponseStatusCodeClassMatchInput';
const FILTER_STATE = `${NETWORK}.FilterStateInput` as const;
const METADATA = `${NETWORK}.DynamicMetadataInput` as const;
const ENVIRONMENT = `${COMMON}.environment_variable.v3.Config` as const;

const OF_CONNECTIONS: Readonly<Record<string, ConnectionInputKind>> = {
  [`${NETWORK}.DestinationIPInput`]: 'destination-ip',
  [`${NETWORK}.DestinationPortInput`]: 'destination-port',
  [`${NETWORK}.SourceIPInput`]: 'source-ip',
  [`${NETWORK}.SourcePortInput`]: 'source-port',
  [`${NETWORK}.DirectSourceIPInput`]: 'direct-source-ip',
  [`${NETWORK}.SourceTypeInput`]: 'source-type',
  [`${NETWORK}.ServerNameInput`]: 'server-name',
  [`${NETWORK}.TransportProtocolInput`]: 'transport-protocol',
  [`${NETWORK}.ApplicationProtocolInput`]: 'application-protocol',
  [`${SSL}.UriSanInput`]: 'uri-san',
  [`${SSL}.DnsSanInput`]: 'dns-san',
  [`${SSL}.SubjectInput`]: 'subject',
};

/** Message types of all inputs. */
export const MATCH_INPUT_TYPES: readonly string[] = [
  HEADER,
  QUERY,
  RESPONSE_HEADER,
  STATUS,
  STATUS_CLASS,
  ...Object.keys(OF_CONNECTIONS),
  FILTER_STATE,
  METADATA,
  ENVIRONMENT,
];

/** Inputs of what a connection has before and beside requests. */
export const CONNECTION_INPUTS: ReadonlySet<MatchInput['kind']> = new Set([
  ...Object.values(OF_CONNECTIONS),
  'filter-state',
  'dynamic-metadata',
  'constant',
]);

export const REQUEST_INPUTS: ReadonlySet<MatchInput['kind']> = new Set([
  ...CONNECTION_INPUTS,
  'request-header',
  'query-parameter',
]);

export const RESPONSE_INPUTS: ReadonlySet<MatchInput['kind']> = new Set([
  ...REQUEST_INPUTS,
  'response-header',
  'response-status',
  'response-status-class',
]);

/** @param known kinds that there are here. @param why another one is a fault. @returns undefined for what is none; reports it. */
export function convertInput(
  extension: ExtensionMessage,
  at: string,
  known: ReadonlySet<MatchInput['kind']>,
  conversion: Conversion,
  why?: string,
): MatchInput | undefined {
  const opened = openExtension(extension?.typed_config ?? null);
  // Another type has been reported.
  if (opened === undefined || !MATCH_INPUT_TYPES.includes(opened.typeName)) return undefined;
  const input = inputOf(opened.typeName, opened.message, conversion);
  if (known.has(input.kind)) return input;
  const owners = input.kind.startsWith('response-') ? 'responses' : 'requests';
  conversion.faults.error(`${at}.typed_config`, why ?? `is an input that there is only of ${owners}`);
  return undefined;
}

function inputOf(typeName: string, message: object, { environment }: Conversion): MatchInput {
  switch (typeName) {
    case HEADER:
      return { kind: 'request-header', name: (message as MessageTypes[typeof HEADER]).header_name.toLowerCase() };
    case QUERY:
      return { kind: 'query-parameter', name: (message as MessageTypes[typeof QUERY]).query_param };
    case RESPONSE_HEADER: {
      const { header_name: name } = message as MessageTypes[typeof RESPONSE_HEADER];
      return { kind: 'response-header', name: name.toLowerCase() };
    }
    case STATUS:
      return { kind: 'response-status' };
    case STATUS_CLASS:
      return { kind: 'response-status-class' };
    case FILTER_STATE:
      return { kind: 'filter-state', key: (message as MessageTypes[typeof FILTER_STATE]).key };
    case METADATA: {
      const { filter: namespace, path } = message as MessageTypes[typeof METADATA];
      return { kind: 'dynamic-metadata', namespace, path: path.map(({ key }) => key) };
    }
    case ENVIRONMENT: {
      const value = environment?.[(message as MessageTypes[typeof ENVIRONMENT]).name];
      return { kind: 'constant', value: value ?? null };
    }
    default:
      return { kind: OF_CONNECTIONS[typeName]! };
  }
}
