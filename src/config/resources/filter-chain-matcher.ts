// Listener.filter_chain_matcher: a decision tree that leads to filter chains by their names, in place of their criteria.

import type { FilterChainChoice, MatchInput, MatchTree } from '../../snapshot/index.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { quote } from '../source/node.ts';
import type { Conversion } from './conversion.ts';
import { type OpenedExtension, openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import { convertSubstitutionFormat } from './format/line-format.ts';
import { CONNECTION_INPUTS } from './matching/match-inputs.ts';
import { convertMatchTree, type MatcherMessage } from './matching/match-tree.ts';
import type { Any, Listener } from './messages.ts';

const NAME = 'google.protobuf.StringValue';
const FORMAT = 'proxy.config.core.v3.SubstitutionFormatString';
/** Message types of the actions. */
export const FILTER_CHAIN_ACTIONS: readonly string[] = [NAME, FORMAT];

const OF_CLIENT_HELLO = /\.network\.v3\.(?:ServerName|TransportProtocol|ApplicationProtocol)Input/;
/** What is known of a client before its handshake. */
const INPUTS: ReadonlySet<MatchInput['kind']> = new Set(
  [...CONNECTION_INPUTS].filter((kind) => !['uri-san', 'dns-san', 'subject'].includes(kind)),
);

/** @returns nothing for a listener without a tree. */
export function convertFilterChainMatcher(
  message: Listener,
  at: string,
  conversion: Conversion,
): { readonly filterChainMatcher?: MatchTree<FilterChainChoice> } {
  const { filter_chain_matcher: matcher } = message;
  if (matcher === null) return {};
  const { faults } = conversion;
  checkChains(message, at, faults);
  const names = new Set(message.filter_chains.map(({ name }) => name));
  const convertAction = (opened: OpenedExtension, here: string): FilterChainChoice | undefined => {
    if (opened.typeName === FORMAT) return convertFormat(opened, here, conversion);
    if (opened.typeName !== NAME) {
      faults.error(here, `${quote(opened.typeName)} is no action here: ${quote(NAME)} and ${quote(FORMAT)} are`);
      return undefined;
    }
    const name = (opened.message as { readonly value: string }).value;
    if (!names.has(name)) {
      faults.warning(here, `no filter chain has the name ${quote(name)}: connections that are led there are closed`);
    }
    return { kind: 'name', name };
  };
  const otherInputs = 'is no input here: filter chains are chosen before handshakes and requests';
  const place = { inputs: INPUTS, otherInputs, convertAction };
  return { filterChainMatcher: convertMatchTree(matcher, `${at}.filter_chain_matcher`, place, conversion) };
}

/** A tree finds chains by nothing but their names. */
function checkChains({ filter_chains: chains }: Listener, at: string, faults: FaultSink): void {
  const names = new Map<string, number>();
  for (const [index, { name, filter_chain_match: match }] of chains.entries()) {
    const here = `${at}.filter_chains[${index}]`;
    const first = names.get(name);
    if (name === '') faults.error(`${here}.name`, 'is needed: filter_chain_matcher finds filter chains by their names');
    else if (first !== undefined)
      faults.error(`${here}.name`, `${at}.filter_chains[${first}] has the name ${quote(name)}`);
    else names.set(name, index);
    if (match !== null)
      faults.error(`${here}.filter_chain_match`, 'filter_chain_matcher takes its place: leave one out');
  }
}

function convertFormat(
  { message }: OpenedExtension,
  at: string,
  conversion: Conversion,
): FilterChainChoice | undefined {
  const format = convertSubstitutionFormat(message as MessageTypes[typeof FORMAT], at, conversion);
  if (format === undefined) return undefined;
  if (format.content.kind !== 'text') {
    conversion.faults.error(`${at}.json_format`, 'is no name of a filter chain: use text_format_source');
    return undefined;
  }
  return { kind: 'format', segments: format.content.segments, omitsEmptyValues: format.omitEmptyValues };
}

/** Whether a tree looks at what only a TLS inspector finds out. */
export function treeAsksForClientHello(matcher: MatcherMessage): boolean {
  for (const typeName of extensionsIn(matcher)) if (OF_CLIENT_HELLO.test(typeName)) return true;
  return false;
}

/** Message types of all extensions in a message, at whatever depth. */
function* extensionsIn(message: object): Generator<string> {
  for (const value of Object.values(message)) {
    if (typeof value !== 'object' || value === null) continue;
    const opened = 'type_url' in value ? openExtension(value as Any) : undefined;
    if (opened !== undefined) yield opened.typeName;
    yield* extensionsIn(opened?.message ?? value);
  }
}
