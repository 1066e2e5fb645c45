// FilterChainMatch messages as criteria, and the rule that no two chains of a listener may take the same connection.

import { parsePrefix, prefixKey } from '../../base/ip-number.ts';
import type { CidrRange, ConnectionSourceType, FilterChainMatch } from '../../snapshot/index.ts';
import { quote } from '../source/node.ts';
import { convertCidrRanges } from './cidr.ts';
import type { FaultSink } from './fault-sink.ts';
import type { FilterChainMatchMessage } from './messages.ts';
import { valueOr } from './units.ts';

/** By number: the name of v2 for the second is another. */
const SOURCE_TYPES: readonly ConnectionSourceType[] = ['ANY', 'SAME_IP_OR_LOOPBACK', 'EXTERNAL'];

const WILDCARD = '*.';
const NAME = /^[!--/-~][!-~]*$/;

const MATCHES_ALL: FilterChainMatch = {
  destinationPort: 0,
  prefixRanges: [],
  serverNames: [],
  transportProtocol: '',
  applicationProtocols: [],
  directSourcePrefixRanges: [],
  sourceType: 'ANY',
  sourcePrefixRanges: [],
  sourcePorts: [],
};

export function convertFilterChainMatch(
  message: FilterChainMatchMessage | null,
  at: string,
  faults: FaultSink,
): FilterChainMatch {
  if (message === null) return MATCHES_ALL;
  const ranges = (field: 'prefix_ranges' | 'direct_source_prefix_ranges' | 'source_prefix_ranges') =>
    convertCidrRanges(message[field], `${at}.${field}`, faults);
  return {
    destinationPort: valueOr(message.destination_port, 0),
    prefixRanges: ranges('prefix_ranges'),
    serverNames: convertServerNames(message.server_names, `${at}.server_names`, faults),
    transportProtocol: transportProtocolOf(message),
    applicationProtocols: message.application_protocols,
    directSourcePrefixRanges: ranges('direct_source_prefix_ranges'),
    sourceType: SOURCE_TYPES[message.source_type] ?? 'ANY',
    sourcePrefixRanges: ranges('source_prefix_ranges'),
    sourcePorts: message.source_ports,
  };
}

/** Other values have been refused by the support table. */
function transportProtocolOf({
  transport_protocol: name,
}: FilterChainMatchMessage): FilterChainMatch['transportProtocol'] {
  return name === 'tls' || name === 'raw_buffer' ? name : '';
}

/** @returns the names in lower case; those with a fault are left out. */
function convertServerNames(names: readonly string[], at: string, faults: FaultSink): readonly string[] {
  return names.flatMap((written, index) => {
    const problem = serverNameProblem(written);
    if (problem === undefined) return [written.toLowerCase()];
    faults.error(`${at}[${index}]`, `${quote(written)} ${problem}`);
    return [];
  });
}

/** What is not said by one name, or by all names below one, cannot be found by looking names up. */
function serverNameProblem(name: string): string | undefined {
  if (name === '') return 'is no server name; without any, a chain takes all';
  if (name === '*') return 'is not needed: a chain without server names takes all';
  const rest = name.startsWith(WILDCARD) ? name.slice(WILDCARD.length) : name;
  if (rest.includes('*')) return 'may have a wildcard as its first label only, as in *.example.com';
  return NAME.test(rest) ? undefined : 'is no name that a client can ask for';
}

/**
 * Two chains collide when they have a value, or "any", in common in every criterion: nothing could decide between them.
 * @param at path of the list, `….filter_chains`.
 */
export function checkDistinctMatches(matches: readonly FilterChainMatch[], at: string, faults: FaultSink): void {
  const criteria = matches.map(criteriaOf);
  for (const [index, own] of criteria.entries()) {
    const earlier = criteria.findIndex(
      (other, place) => place < index && own.every((keys, i) => meet(keys, other[i]!)),
    );
    if (earlier === -1) continue;
    faults.error(`${at}[${index}].filter_chain_match`, `takes connections that ${at}[${earlier}] takes as well`);
  }
}

/** Values by criterion; the empty text stands for any. */
function criteriaOf(match: FilterChainMatch): readonly ReadonlySet<string>[] {
  return [
    keySet(match.destinationPort === 0 ? [] : [`${match.destinationPort}`]),
    keySet(match.prefixRanges.map(rangeKey)),
    keySet(match.serverNames),
    keySet(match.transportProtocol === '' ? [] : [match.transportProtocol]),
    keySet(match.applicationProtocols),
    keySet(match.directSourcePrefixRanges.map(rangeKey)),
    keySet(match.sourceType === 'ANY' ? [] : [match.sourceType]),
    keySet(match.sourcePrefixRanges.map(rangeKey)),
    keySet(match.sourcePorts.map(String)),
  ];
}

function keySet(values: readonly string[]): ReadonlySet<string> {
  return new Set(values.length === 0 ? [''] : values);
}

function rangeKey({ ip, prefixLength }: CidrRange): string {
  return prefixKey(parsePrefix(ip, prefixLength)!);
}

function meet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  for (const value of a) if (b.has(value)) return true;
  return false;
}
