import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseIp } from '../../../../src/base/ip-number.ts';
import { FilterChainMatcher, type MatchedConnection } from '../../../../src/data-plane/listener/filter-chain-match.ts';
import type { CidrRange, FilterChainMatch } from '../../../../src/snapshot/index.ts';
import { MATCHES_ALL } from '../../../support/listeners.ts';

type Criteria = Partial<FilterChainMatch>;

interface Ends {
  readonly from?: string;
  readonly fromPort?: number;
  readonly to?: string;
  readonly toPort?: number;
  /** The address at the other end of the socket, where a PROXY header named another. */
  readonly directly?: string;
  /** What the client has announced. */
  readonly name?: string;
  readonly transport?: 'raw_buffer' | 'tls';
  readonly protocols?: readonly string[];
}

function connection(ends: Ends): MatchedConnection {
  const { from = '192.0.2.1', fromPort = 40_000, to = '10.0.0.1', toPort = 443, directly = from } = ends;
  return {
    localPort: toPort,
    localIp: parseIp(to),
    remotePort: fromPort,
    requestedServerName: ends.name ?? '',
    transportProtocol: ends.transport ?? 'raw_buffer',
    applicationProtocols: ends.protocols ?? [],
    remoteIp: parseIp(from),
    directRemoteIp: parseIp(directly),
  };
}

function cidr(text: string): CidrRange {
  const [ip, length] = text.split('/');
  return { ip: ip!, prefixLength: Number(length) };
}

function matcher(chains: Readonly<Record<string, Criteria>>, last?: string): FilterChainMatcher<string> {
  const candidates = Object.entries(chains).map(([chain, match]) => ({ chain, match: { ...MATCHES_ALL, ...match } }));
  return new FilterChainMatcher(candidates, last);
}

const to = (...ranges: string[]): Criteria => ({ prefixRanges: ranges.map(cidr) });
const from = (...ranges: string[]): Criteria => ({ sourcePrefixRanges: ranges.map(cidr) });
const directly = (...ranges: string[]): Criteria => ({ directSourcePrefixRanges: ranges.map(cidr) });

interface Case {
  readonly name: string;
  readonly chains: Readonly<Record<string, Criteria>>;
  readonly last?: string;
  /** Pairs of a connection and the chain that it meets. */
  readonly meets: readonly (readonly [Ends, string | undefined])[];
}

const CASES: readonly Case[] = [
  { name: 'a chain without criteria takes everything', chains: { all: {} }, meets: [[{}, 'all']] },
  {
    name: 'no chain and no default take nothing',
    chains: {},
    meets: [[{}, undefined]],
  },
  {
    name: 'the default chain takes what no other does',
    chains: { https: { destinationPort: 443 } },
    last: 'default',
    meets: [
      [{ toPort: 443 }, 'https'],
      [{ toPort: 80 }, 'default'],
    ],
  },
  {
    name: 'a port goes before any port',
    chains: { any: {}, https: { destinationPort: 443 } },
    meets: [
      [{ toPort: 443 }, 'https'],
      [{ toPort: 80 }, 'any'],
    ],
  },
  {
    name: 'the longest destination block wins, both families apart',
    chains: { any: {}, ten: to('10.0.0.0/8'), ten1: to('10.1.0.0/16', '2001:db8::/32'), one: to('10.1.2.3/32') },
    meets: [
      [{ to: '10.9.9.9' }, 'ten'],
      [{ to: '10.1.9.9' }, 'ten1'],
      [{ to: '10.1.2.3' }, 'one'],
      [{ to: '::ffff:10.1.2.3' }, 'one'],
      [{ to: '2001:db8::1' }, 'ten1'],
      [{ to: '2001:db9::1' }, 'any'],
      [{ to: '11.0.0.1' }, 'any'],
    ],
  },
  {
    name: 'a block of length 0 takes its own family only, and goes before any',
    chains: { any: {}, four: to('0.0.0.0/0') },
    meets: [
      [{ to: '10.0.0.1' }, 'four'],
      [{ to: '::1' }, 'any'],
    ],
  },
  {
    name: 'bits behind a prefix do not matter',
    chains: { ten: to('10.255.255.255/8') },
    meets: [[{ to: '10.0.0.1' }, 'ten']],
  },
  {
    name: 'a port decides before a block, without a way back',
    chains: { port: { destinationPort: 443, ...to('10.0.0.0/8') }, block: to('11.0.0.0/8') },
    last: 'default',
    meets: [
      [{ toPort: 443, to: '10.0.0.1' }, 'port'],
      [{ toPort: 443, to: '11.0.0.1' }, 'default'],
      [{ toPort: 80, to: '11.0.0.1' }, 'block'],
    ],
  },
  {
    name: 'a destination block decides before a source block',
    chains: { dest: to('10.0.0.0/8'), source: from('192.0.2.0/24') },
    meets: [
      [{ to: '10.0.0.1', from: '192.0.2.1' }, 'dest'],
      [{ to: '11.0.0.1', from: '192.0.2.1' }, 'source'],
      [{ to: '11.0.0.1', from: '192.0.3.1' }, undefined],
    ],
  },
  {
    name: 'raw_buffer goes before an open transport',
    chains: { open: {}, raw: { transportProtocol: 'raw_buffer' } },
    meets: [[{}, 'raw']],
  },
  {
    name: 'the socket counts for direct sources, the header for sources',
    chains: { direct: directly('10.0.0.0/8'), source: from('192.0.2.0/24') },
    meets: [
      [{ from: '192.0.2.1', directly: '10.0.0.9' }, 'direct'],
      [{ from: '192.0.2.1', directly: '11.0.0.9' }, 'source'],
      [{ from: '10.0.0.1', directly: '11.0.0.9' }, undefined],
    ],
  },
  {
    name: 'a source on this machine is told from others',
    chains: { any: {}, local: { sourceType: 'SAME_IP_OR_LOOPBACK' }, external: { sourceType: 'EXTERNAL' } },
    meets: [
      [{ from: '127.0.0.9' }, 'local'],
      [{ from: '::1' }, 'local'],
      [{ from: '10.0.0.1', to: '10.0.0.1' }, 'local'],
      [{ from: '10.0.0.2', to: '10.0.0.1' }, 'external'],
    ],
  },
  {
    name: 'any source stands in for the type that is missing',
    chains: { any: {}, local: { sourceType: 'SAME_IP_OR_LOOPBACK' } },
    meets: [
      [{ from: '127.0.0.1' }, 'local'],
      [{ from: '192.0.2.1' }, 'any'],
    ],
  },
  {
    name: 'a source type decides before a source block, without a way back',
    chains: { local: { sourceType: 'SAME_IP_OR_LOOPBACK', ...from('127.0.0.1/32') }, all: from('127.0.0.0/8') },
    meets: [
      [{ from: '127.0.0.1' }, 'local'],
      [{ from: '127.0.0.2' }, undefined],
    ],
  },
  {
    name: 'a source block decides before a source port',
    chains: {
      block: from('192.0.2.0/24'),
      port: { sourcePorts: [5, 6] },
      both: { ...from('192.0.2.0/25'), sourcePorts: [5] },
    },
    meets: [
      [{ from: '192.0.2.1', fromPort: 5 }, 'both'],
      [{ from: '192.0.2.1', fromPort: 6 }, undefined],
      [{ from: '192.0.2.200', fromPort: 6 }, 'block'],
      [{ from: '192.0.3.1', fromPort: 6 }, 'port'],
      [{ from: '192.0.3.1', fromPort: 7 }, undefined],
    ],
  },
  {
    name: 'one chain may be reached by several values',
    chains: { a: { ...to('10.0.0.0/8', '11.0.0.0/8'), sourcePorts: [1, 2] }, b: {} },
    meets: [
      [{ to: '11.0.0.1', fromPort: 2 }, 'a'],
      [{ to: '12.0.0.1', fromPort: 2 }, 'b'],
    ],
  },
  {
    name: 'a server name goes before the longest end of it, that before a shorter one, and all before any name',
    chains: {
      any: {},
      com: { serverNames: ['*.com'] },
      example: { serverNames: ['*.example.com', '*.example.org'] },
      www: { serverNames: ['www.example.com', 'example.com'] },
    },
    meets: [
      [{ name: 'www.example.com' }, 'www'],
      [{ name: 'example.com' }, 'www'],
      [{ name: 'ftp.example.com' }, 'example'],
      [{ name: 'a.b.example.org' }, 'example'],
      [{ name: 'example.org' }, 'any'],
      [{ name: 'www.example.com.' }, 'any'],
      [{ name: 'other.com' }, 'com'],
      [{ name: 'com' }, 'any'],
      [{ name: '' }, 'any'],
    ],
  },
  {
    name: 'without a chain for any name, others meet none',
    chains: { one: { serverNames: ['one.test'] } },
    last: 'default',
    meets: [
      [{ name: 'one.test' }, 'one'],
      [{ name: 'two.test' }, 'default'],
      [{}, 'default'],
    ],
  },
  {
    name: 'a server name decides before transport, protocols and sources, a destination block before it',
    chains: {
      dest: { ...to('10.1.0.0/16'), serverNames: ['one.test'] },
      name: { serverNames: ['one.test'], applicationProtocols: ['h2'] },
      tls: { transportProtocol: 'tls' },
      source: from('192.0.2.0/24'),
    },
    meets: [
      [{ name: 'one.test', transport: 'tls', protocols: ['h2'] }, 'name'],
      [{ name: 'one.test', transport: 'tls', protocols: ['http/1.1'] }, undefined],
      [{ name: 'two.test', transport: 'tls', protocols: ['h2'] }, 'tls'],
      [{ name: 'two.test', transport: 'tls', to: '10.1.0.1' }, undefined],
      [{ to: '11.0.0.1' }, 'source'],
    ],
  },
  {
    name: 'a transport goes before any transport, and before protocols',
    chains: {
      raw: { transportProtocol: 'raw_buffer' },
      tls: { transportProtocol: 'tls', applicationProtocols: ['http/1.1'] },
      h2: { applicationProtocols: ['h2'] },
    },
    meets: [
      [{}, 'raw'],
      [{ transport: 'tls', protocols: ['http/1.1'] }, 'tls'],
      [{ transport: 'tls', protocols: ['h2'] }, undefined],
    ],
  },
  {
    name: 'connections of a transport that no chain asks for meet those that ask for none',
    chains: { any: {}, tls: { transportProtocol: 'tls' } },
    meets: [
      [{}, 'any'],
      [{ transport: 'tls' }, 'tls'],
    ],
  },
  {
    name: 'of protocols, the client prefers the first that a chain asks for',
    chains: { any: {}, h2: { applicationProtocols: ['h2', 'h2c'] }, http1: { applicationProtocols: ['http/1.1'] } },
    meets: [
      [{ protocols: ['h2', 'http/1.1'] }, 'h2'],
      [{ protocols: ['http/1.1', 'h2'] }, 'http1'],
      [{ protocols: ['spdy/1', 'h2c'] }, 'h2'],
      [{ protocols: ['spdy/1'] }, 'any'],
      [{}, 'any'],
    ],
  },
  {
    name: 'a protocol decides before a direct source block',
    chains: { h2: { applicationProtocols: ['h2'], ...directly('10.0.0.0/8') }, direct: directly('192.0.2.0/24') },
    meets: [
      [{ protocols: ['h2'] }, undefined],
      [{ protocols: ['h2'], directly: '10.0.0.1' }, 'h2'],
      [{ protocols: ['x'] }, 'direct'],
    ],
  },
];

describe('the filter chain of a connection', () => {
  for (const { name, chains, last, meets } of CASES) {
    it(name, () => {
      const found = matcher(chains, last);
      const reversed = matcher(Object.fromEntries(Object.entries(chains).reverse()), last);
      for (const [ends, expected] of meets) {
        assert.equal(found.find(connection(ends)), expected, JSON.stringify(ends));
        assert.equal(reversed.find(connection(ends)), expected, `the order of chains matters: ${JSON.stringify(ends)}`);
      }
    });
  }

  it('that came by a pipe is one of this machine without addresses', () => {
    const pipe: MatchedConnection = {
      localPort: 0,
      localIp: undefined,
      remotePort: 0,
      remoteIp: undefined,
      directRemoteIp: undefined,
      requestedServerName: '',
      transportProtocol: 'raw_buffer',
      applicationProtocols: [],
    };
    assert.equal(matcher({ local: { sourceType: 'SAME_IP_OR_LOOPBACK' }, any: {} }).find(pipe), 'local');
    assert.equal(matcher({ four: to('0.0.0.0/0'), any: {} }).find(pipe), 'any');
    assert.equal(matcher({ four: from('0.0.0.0/0') }).find(pipe), undefined);
  });
});
