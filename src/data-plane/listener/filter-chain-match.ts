// Chooses the filter chain of a connection. Step 1 of the request flow; built once per snapshot.
//
// The criteria form levels, the most telling first. At each level the most specific entry that fits the connection is
// taken, an entry for "any" only when no other fits. There is no way back from a level to the one before it, so which
// chain wins can be told from the levels alone.
//
//   destination port ─► destination block ─► server name ─► transport ─► application protocol
//     ─► direct source block ─► source type ─► source block ─► source port ─► chain
//
// A level that no chain makes use of is left out: chains that differ in one criterion cost one look-up.
// Source: spec, FilterChainMatch.

import { type IpNumber, type IpPrefix, parsePrefix, prefixKey } from '../../base/ip-number.ts';
import { PrefixTrie } from '../../base/prefix-trie.ts';
import type { CidrRange, FilterChainMatch } from '../../snapshot/index.ts';
import type { DownstreamConnection } from '../network/downstream-connection.ts';

/** What the criteria are held against. */
export type MatchedConnection = Pick<
  DownstreamConnection,
  | 'localPort'
  | 'localIp'
  | 'requestedServerName'
  | 'transportProtocol'
  | 'applicationProtocols'
  | 'directRemoteIp'
  | 'remoteIp'
  | 'remotePort'
>;

export interface Candidate<Chain> {
  readonly match: FilterChainMatch;
  readonly chain: Chain;
}

/** The rest of the search from some level on; undefined when nothing fits. */
type Step<Chain> = (connection: MatchedConnection) => Chain | undefined;
/** Makes the step behind the level at hand for those that are left there. */
type Next<Chain> = (candidates: readonly Candidate<Chain>[]) => Step<Chain>;

interface Level {
  isUsedBy(match: FilterChainMatch): boolean;
  step<Chain>(candidates: readonly Candidate<Chain>[], next: Next<Chain>): Step<Chain>;
}

const SOURCE_TYPE_LEVEL: Level = {
  isUsedBy: ({ sourceType }) => sourceType !== 'ANY',
  step(candidates, next) {
    const groups = group(candidates, ({ sourceType }) => [sourceType]);
    const any = stepOf(groups.get('ANY'), next);
    const local = stepOf(groups.get('SAME_IP_OR_LOOPBACK'), next) ?? any;
    const external = stepOf(groups.get('EXTERNAL'), next) ?? any;
    return (connection) => (isLocal(connection) ? local : external)?.(connection);
  },
};

/** The name itself, then the longest end of it below which a chain takes all names: of a.b.c, *.b.c and then *.c. */
const SERVER_NAME_LEVEL: Level = {
  isUsedBy: ({ serverNames }) => serverNames.length > 0,
  step(candidates, next) {
    const groups = group(candidates, ({ serverNames }) => orAny(serverNames));
    const any = stepOf(groups.get(undefined), next);
    const steps = new Map<string, NonNullable<typeof any>>();
    for (const [name, members] of groups) {
      if (name !== undefined) steps.set(name.startsWith('*') ? name.slice(1) : name, next(members));
    }
    return (connection) => {
      const name = connection.requestedServerName;
      let step = name === '' ? any : steps.get(name);
      // Ends begin with a dot.
      for (let dot = name.indexOf('.', 1); step === undefined && dot !== -1; dot = name.indexOf('.', dot + 1)) {
        step = steps.get(name.slice(dot));
      }
      return (step ?? any)?.(connection);
    };
  },
};

const TRANSPORT_LEVEL: Level = {
  isUsedBy: ({ transportProtocol }) => transportProtocol !== '',
  step(candidates, next) {
    const groups = group(candidates, ({ transportProtocol }) => [transportProtocol]);
    const any = stepOf(groups.get(''), next);
    const raw = stepOf(groups.get('raw_buffer'), next) ?? any;
    const tls = stepOf(groups.get('tls'), next) ?? any;
    return (connection) => (connection.transportProtocol === 'tls' ? tls : raw)?.(connection);
  },
};

/** The client's order decides, where it offers several that chains ask for. */
const APPLICATION_PROTOCOL_LEVEL: Level = {
  isUsedBy: ({ applicationProtocols }) => applicationProtocols.length > 0,
  step(candidates, next) {
    const groups = group(candidates, ({ applicationProtocols }) => orAny(applicationProtocols));
    const steps = new Map([...groups].map(([protocol, members]) => [protocol, next(members)]));
    const any = steps.get(undefined);
    return (connection) => {
      for (const protocol of connection.applicationProtocols) {
        const step = steps.get(protocol);
        if (step !== undefined) return step(connection);
      }
      return any?.(connection);
    };
  },
};

const LEVELS: readonly Level[] = [
  portLevel(
    ({ destinationPort }) => (destinationPort === 0 ? [] : [destinationPort]),
    ({ localPort }) => localPort,
  ),
  blockLevel(
    ({ prefixRanges }) => prefixRanges,
    ({ localIp }) => localIp,
  ),
  SERVER_NAME_LEVEL,
  TRANSPORT_LEVEL,
  APPLICATION_PROTOCOL_LEVEL,
  blockLevel(
    ({ directSourcePrefixRanges }) => directSourcePrefixRanges,
    ({ directRemoteIp }) => directRemoteIp,
  ),
  SOURCE_TYPE_LEVEL,
  blockLevel(
    ({ sourcePrefixRanges }) => sourcePrefixRanges,
    ({ remoteIp }) => remoteIp,
  ),
  portLevel(
    ({ sourcePorts }) => sourcePorts,
    ({ remotePort }) => remotePort,
  ),
];

export class FilterChainMatcher<Chain extends {}> {
  readonly #find: Step<Chain>;
  readonly #default: Chain | undefined;

  /** @param candidates no two of which match the same connections; the configuration has seen to that. */
  constructor(candidates: readonly Candidate<Chain>[], defaultChain: Chain | undefined) {
    this.#find = candidates.length === 0 ? () => undefined : stepsFrom(0, candidates);
    this.#default = defaultChain;
  }

  /** The chain for a connection whose listener filters are done; undefined when none takes it. */
  find(connection: MatchedConnection): Chain | undefined {
    return this.#find(connection) ?? this.#default;
  }
}

function stepsFrom<Chain>(index: number, candidates: readonly Candidate<Chain>[]): Step<Chain> {
  const level = LEVELS[index];
  if (level === undefined) {
    const { chain } = candidates[0]!;
    return () => chain;
  }
  const next: Next<Chain> = (rest) => stepsFrom(index + 1, rest);
  return candidates.some(({ match }) => level.isUsedBy(match)) ? level.step(candidates, next) : next(candidates);
}

function portLevel(
  portsOf: (match: FilterChainMatch) => readonly number[],
  portOf: (connection: MatchedConnection) => number,
): Level {
  return {
    isUsedBy: (match) => portsOf(match).length > 0,
    step(candidates, next) {
      const groups = group(candidates, (match) => orAny(portsOf(match)));
      const steps = new Map([...groups].map(([port, members]) => [port, next(members)]));
      const any = steps.get(undefined);
      return (connection) => (steps.get(portOf(connection)) ?? any)?.(connection);
    },
  };
}

function blockLevel(
  rangesOf: (match: FilterChainMatch) => readonly CidrRange[],
  ipOf: (connection: MatchedConnection) => IpNumber | undefined,
): Level {
  return {
    isUsedBy: (match) => rangesOf(match).length > 0,
    step<Chain>(candidates: readonly Candidate<Chain>[], next: Next<Chain>): Step<Chain> {
      const prefixes = new Map<string, IpPrefix>();
      const groups = group(candidates, (match) => orAny(rangesOf(match).map((range) => noted(range, prefixes))));
      const blocks = new PrefixTrie<Step<Chain>>();
      for (const [key, prefix] of prefixes) blocks.set(prefix, next(groups.get(key)!));
      const any = stepOf(groups.get(undefined), next);
      return (connection) => {
        const ip = ipOf(connection);
        return ((ip && blocks.find(ip)) ?? any)?.(connection);
      };
    },
  };
}

/** Key of a range, whose prefix is remembered under it. */
function noted({ ip, prefixLength }: CidrRange, prefixes: Map<string, IpPrefix>): string {
  const prefix = parsePrefix(ip, prefixLength)!;
  const key = prefixKey(prefix);
  prefixes.set(key, prefix);
  return key;
}

/** A client on this machine; one that came by a pipe always is. */
function isLocal(connection: MatchedConnection): boolean {
  const remote = connection.remoteIp;
  return remote === undefined || remote.isLoopback || connection.localIp?.equals(remote) === true;
}

function stepOf<Chain>(members: readonly Candidate<Chain>[] | undefined, next: Next<Chain>): Step<Chain> | undefined {
  return members && next(members);
}

function orAny<Value>(values: readonly Value[]): readonly (Value | undefined)[] {
  return values.length === 0 ? [undefined] : values;
}

function group<Chain, Key>(
  candidates: readonly Candidate<Chain>[],
  keysOf: (match: FilterChainMatch) => readonly Key[],
): Map<Key, Candidate<Chain>[]> {
  const groups = new Map<Key, Candidate<Chain>[]>();
  for (const candidate of candidates) {
    for (const key of keysOf(candidate.match)) {
      const members = groups.get(key);
      if (members === undefined) groups.set(key, [candidate]);
      else members.push(candidate);
    }
  }
  return groups;
}
