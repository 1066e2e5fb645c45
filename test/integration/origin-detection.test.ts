// Who has sent a request where original_ip_detection_extensions say how that is found out: what upstreams, filters and logs
// hear of it, over HTTP/1.1 and HTTP/2.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type JsonObject, managerFaults } from '../support/bootstrap.ts';
import { PROXY_PROTOCOL } from '../support/listeners.ts';
import { managerBench, PROTOCOLS, type Question, valuesOf } from '../support/manager-bench.ts';

const PACKAGE = 'type.googleapis.com/envoy.extensions.http.original_ip_detection';
const INSIDE = 'x-proxy-internal';
const MARKS = 'access_log';

function xff(fields: JsonObject = {}): JsonObject {
  return { name: 'xff', typed_config: { '@type': `${PACKAGE}.xff.v3.XffConfig`, ...fields } };
}

function header(fields: JsonObject = {}): JsonObject {
  const typed_config = {
    '@type': `${PACKAGE}.custom_header.v3.CustomHeaderConfig`,
    header_name: 'X-Client',
    ...fields,
  };
  return { name: 'custom_header', typed_config };
}

function proxies(...prefixes: string[]): JsonObject {
  const cidrs = prefixes.map((prefix) => {
    const [address_prefix = '', length] = prefix.split('/');
    return { address_prefix, prefix_len: Number(length) };
  });
  return { xff_trusted_cidrs: { cidrs } };
}

function ways(...extensions: JsonObject[]): JsonObject {
  return { original_ip_detection_extensions: extensions };
}

/** The log of a connection manager, read when it has ended. */
function logOf(t: TestContext, format: string) {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-origin-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'access.log');
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
    path: file,
    log_format: { text_format_source: { inline_string: format } },
  };
  return { fields: { [MARKS]: [{ name: 'file', typed_config }] }, read: () => readFileSync(file, 'utf8') };
}

/** From this peer, by a PROXY header. */
function from(peer: string, ...headers: [string, string][]): Question {
  return { before: `PROXY TCP4 ${peer} 198.51.100.1 1234 80\r\n`, headers };
}

const LISTENER = { listener: { listenerFilters: [PROXY_PROTOCOL] } };
const XFF = 'x-forwarded-for';
const PEER = '10.9.9.9';

interface Case {
  readonly name: string;
  readonly ways: readonly JsonObject[];
  readonly headers: [string, string][];
  readonly peer?: string;
  /** As logs see it, with its port where one is known. */
  readonly client: string;
  readonly isInside?: boolean;
  /** x-forwarded-for of what goes on; as it came when absent. */
  readonly forwardedFor?: string;
}

const CASES: readonly Case[] = [
  { name: 'the last hop', ways: [xff()], headers: [[XFF, '1.1.1.1, 2.2.2.2']], client: '2.2.2.2:0' },
  { name: 'an only hop inside', ways: [xff()], headers: [[XFF, '10.0.0.1']], client: '10.0.0.1:0', isInside: true },
  { name: 'one of several hops', ways: [xff()], headers: [[XFF, '1.1.1.1, 10.0.0.1']], client: '10.0.0.1:0' },
  {
    name: 'a hop before those that are believed',
    ways: [xff({ xff_num_trusted_hops: 1 })],
    headers: [[XFF, '1.1.1.1,2.2.2.2']],
    client: '1.1.1.1:0',
  },
  {
    name: 'of too few hops none',
    ways: [xff({ xff_num_trusted_hops: 2 })],
    headers: [[XFF, '1.1.1.1,2.2.2.2']],
    client: `${PEER}:1234`,
  },
  { name: 'nobody without hops', ways: [xff()], headers: [], client: `${PEER}:1234` },
  { name: 'nobody by what is no address', ways: [xff()], headers: [[XFF, 'unknown']], client: `${PEER}:1234` },
  {
    name: 'a hop of IPv6',
    ways: [xff()],
    headers: [[XFF, '2001:db8::7']],
    client: '[2001:db8::7]:0',
  },
  {
    name: 'the last hop, and adds the peer where asked to',
    ways: [xff({ skip_xff_append: false })],
    headers: [[XFF, '1.1.1.1']],
    client: '1.1.1.1:0',
    forwardedFor: `1.1.1.1,${PEER}`,
  },
  {
    name: 'the last that is no proxy',
    ways: [xff(proxies('10.9.0.0/16', '192.0.2.0/24'))],
    headers: [[XFF, '1.1.1.1, 2.2.2.2, 192.0.2.1, 10.9.1.1']],
    client: '2.2.2.2:0',
  },
  {
    name: 'the first where all are proxies',
    ways: [xff(proxies('10.9.0.0/16', '192.0.2.0/24'))],
    headers: [[XFF, '192.0.2.7, 10.9.1.1']],
    client: '192.0.2.7:0',
  },
  {
    name: 'nobody of a peer that is no proxy',
    ways: [xff(proxies('192.0.2.0/24'))],
    headers: [[XFF, '1.1.1.1']],
    client: `${PEER}:1234`,
  },
  {
    name: 'nobody behind what is no address',
    ways: [xff(proxies('10.9.0.0/16'))],
    headers: [[XFF, '1.1.1.1, unknown, 10.9.1.1']],
    client: '10.9.1.1:0',
  },
  {
    name: 'nobody where the last is no address',
    ways: [xff(proxies('10.9.0.0/16'))],
    headers: [[XFF, '1.1.1.1, unknown']],
    client: `${PEER}:1234`,
  },
  {
    name: 'an only hop behind a proxy',
    ways: [xff(proxies('10.9.0.0/16'))],
    headers: [[XFF, '10.0.0.1']],
    client: '10.0.0.1:0',
    isInside: true,
  },
  {
    name: 'what a header says, who is outside',
    ways: [header()],
    headers: [['x-client', '10.0.0.1']],
    client: '10.0.0.1:0',
    forwardedFor: PEER,
  },
  {
    name: 'what a header says that is believed',
    ways: [header({ allow_extension_to_set_address_as_trusted: true })],
    headers: [['x-client', '10.0.0.1']],
    client: '10.0.0.1:0',
    isInside: true,
    forwardedFor: PEER,
  },
  {
    name: 'what the first of several fields says',
    ways: [header()],
    headers: [
      ['x-client', '1.1.1.1'],
      ['x-client', '2.2.2.2'],
    ],
    client: '1.1.1.1:0',
    forwardedFor: PEER,
  },
  {
    name: 'what the next way finds',
    ways: [header(), xff()],
    headers: [[XFF, '1.1.1.1']],
    client: '1.1.1.1:0',
  },
  {
    name: 'what the next way finds where there is no address',
    ways: [xff(), header()],
    headers: [
      [XFF, 'unknown'],
      ['x-client', '1.1.1.1'],
    ],
    client: '1.1.1.1:0',
    forwardedFor: `unknown,${PEER}`,
  },
  {
    name: 'nobody of a list that ends early',
    ways: [xff()],
    headers: [[XFF, '1.1.1.1,']],
    client: `${PEER}:1234`,
  },
  {
    name: 'what the first way has found',
    ways: [header(), xff()],
    headers: [
      ['x-client', '2.2.2.2'],
      [XFF, '1.1.1.1'],
    ],
    client: '2.2.2.2:0',
    forwardedFor: `1.1.1.1,${PEER}`,
  },
];

for (const protocol of PROTOCOLS) {
  describe(`over ${protocol} a request is from`, () => {
    for (const { name, ways: extensions, headers, peer = PEER, client, isInside = false, forwardedFor } of CASES) {
      test(name, async (t) => {
        const log = logOf(t, '%DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%\n');
        const bench = await managerBench(t, { ...log.fields, ...ways(...extensions) }, LISTENER);
        assert.equal((await bench.ask(protocol, from(peer, ...headers))).status, 200);
        const head = bench.head();
        assert.deepEqual(valuesOf(head, INSIDE), isInside ? ['true'] : []);
        const came = headers.filter(([each]) => each === XFF).map(([, value]) => value);
        assert.deepEqual(valuesOf(head, XFF), forwardedFor === undefined ? came : [forwardedFor]);
        await bench.proxy.close();
        assert.equal(log.read(), `${client} 127.0.0.1\n`);
      });
    }
  });

  describe(`over ${protocol} a request that does not say who has sent it`, () => {
    for (const [code, status] of [
      ['Unauthorized', 401],
      ['OK', 403],
      ['NetworkAuthenticationRequired', 511],
    ] as const) {
      test(`is refused by ${code}`, async (t) => {
        const log = logOf(t, '%RESPONSE_CODE_DETAILS%\n');
        const rejecting = header({ reject_with_status: { code } });
        const bench = await managerBench(t, { ...log.fields, ...ways(rejecting, xff()) }, LISTENER);
        assert.equal((await bench.ask(protocol, from(PEER, [XFF, '1.1.1.1']))).status, status);
        assert.equal((await bench.ask(protocol, from(PEER, ['x-client', 'nobody']))).status, status);
        assert.deepEqual(bench.heads, []);
        assert.equal((await bench.ask(protocol, from(PEER, ['x-client', '1.1.1.1']))).status, 200);
        await bench.proxy.close();
        const refused = 'rejecting_because_detection_failed\n';
        assert.equal(log.read(), `${refused}${refused}via_upstream\n`);
      });
    }
  });
}

test('nothing is added to x-forwarded-for where nothing ever is', async (t) => {
  const bench = await managerBench(t, { ...ways(header()), skip_xff_append: true }, LISTENER);
  await bench.ask('HTTP/1.1', from(PEER, ['x-client', '1.1.1.1']));
  assert.deepEqual(valuesOf(bench.head(), XFF), []);
});

describe('logs see the client', () => {
  for (const [name, fields, headers, client] of [
    [
      'behind hops that are believed',
      { use_remote_address: true, xff_num_trusted_hops: 1 },
      [[XFF, '1.1.1.1']],
      '1.1.1.1:0',
    ],
    ['of the connection where none are', { use_remote_address: true }, [[XFF, '1.1.1.1']], `${PEER}:1234`],
    ['that the last hop names', {}, [[XFF, '2.2.2.2, 1.1.1.1']], '1.1.1.1:0'],
    ['of the connection where the hop names none', {}, [[XFF, 'x']], `${PEER}:1234`],
  ] as const) {
    test(name, async (t) => {
      const log = logOf(t, '%DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%\n');
      const bench = await managerBench(t, { ...log.fields, ...fields }, LISTENER);
      await bench.ask('HTTP/1.1', from(PEER, ...headers.map(([each, value]): [string, string] => [each, value])));
      await bench.proxy.close();
      assert.equal(log.read(), `${client} ${client.slice(0, client.lastIndexOf(':'))}\n`);
    });
  }

  test('in header values, too, where no log has asked', async (t) => {
    const request_headers_to_add = [{ header: { key: 'x-from', value: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%' } }];
    const routes = [{ match: { prefix: '/' }, route: { cluster: 'web' } }];
    const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes, request_headers_to_add }] };
    const bench = await managerBench(t, { route_config }, LISTENER);
    await bench.ask('HTTP/1.1', from(PEER, [XFF, '1.1.1.1']));
    assert.deepEqual(valuesOf(bench.head(), 'x-from'), ['1.1.1.1']);
  });
});

describe('ways to find it out are refused', () => {
  for (const [name, fields, error] of [
    [
      'beside use_remote_address',
      { ...ways(xff()), use_remote_address: true },
      /cannot be given together with use_remote/,
    ],
    [
      'beside xff_num_trusted_hops',
      { ...ways(xff()), xff_num_trusted_hops: 1 },
      /together with xff_num_trusted_hops: say/,
    ],
    [
      'with both kinds of trust',
      ways(xff({ xff_num_trusted_hops: 1, ...proxies('10.0.0.0/8') })),
      /\[0\]\.typed_config\.xff_trusted_cidrs: cannot be given together with xff_num_trusted_hops/,
    ],
    ['without proxies', ways(xff(proxies())), /xff_trusted_cidrs\.cidrs: names no proxy/],
    ['with what is no range', ways(xff(proxies('10.0.0.0/33'))), /cidrs\[0\]\.prefix_len: 33 exceeds/],
    ['with what is no header', ways(header({ header_name: 'a b' })), /header_name/],
    ['without a header', ways(header({ header_name: '' })), /header_name/],
    [
      'that this build lacks',
      ways({ name: 'x', typed_config: { '@type': 'type.googleapis.com/google.protobuf.Struct' } }),
      /typed_config/,
    ],
  ] as const) {
    test(name, () => {
      const faults = managerFaults(fields);
      assert.match(faults.join('\n'), error);
    });
  }
});
