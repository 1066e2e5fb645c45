// What upstreams are told of where requests come from, beyond the rest: who is inside, schemes, ports, the service's own name,
// identifiers in responses. The same over HTTP/1.1 and HTTP/2, from a configuration to bytes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import {
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  managerFaults,
  withListeners,
} from '../support/bootstrap.ts';
import { PROXY_PROTOCOL } from '../support/listeners.ts';
import { managerBench, PROTOCOLS, type Question, valuesOf } from '../support/manager-bench.ts';
import { WireClient } from '../support/wire.ts';

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const INTERNAL = 'x-proxy-internal';
const EXTERNAL = 'x-proxy-external-address';

/** By a PROXY header. */
function from(address: string, port = 80): Question {
  return { before: `PROXY TCP4 ${address} 198.51.100.1 1234 ${port}\r\n` };
}

const BEHIND_PROXY = { listener: { listenerFilters: [PROXY_PROTOCOL] } };

function ranges(...prefixes: [ip: string, length: number][]): JsonObject {
  return { cidr_ranges: prefixes.map(([address_prefix, prefix_len]) => ({ address_prefix, prefix_len })) };
}

function errorsOf(fields: JsonObject): string {
  return managerFaults(fields).join('\n');
}

for (const protocol of PROTOCOLS) {
  describe(`over ${protocol} a request is inside`, () => {
    const cases: readonly [what: string, config: JsonObject | undefined, address: string, isInside: boolean][] = [
      ['from a private network', undefined, '10.1.2.3', true],
      ['not from elsewhere', undefined, '192.0.2.1', false],
      ['from a private network where nothing else is said', {}, '10.1.2.3', true],
      ['from a range', ranges(['192.0.2.0', 24]), '192.0.2.1', true],
      ['from the second of two', ranges(['198.51.100.0', 24], ['192.0.2.1', 32]), '192.0.2.1', true],
      ['not from a private network where ranges are said', ranges(['192.0.2.0', 24]), '10.1.2.3', false],
      ['from a range of IPv4 in IPv6', ranges(['::ffff:192.0.2.0', 120]), '192.0.2.1', true],
      ['from a range without a length', { cidr_ranges: [{ address_prefix: '192.0.2.1' }] }, '10.1.2.3', true],
    ];
    for (const [what, config, address, isInside] of cases) {
      test(what, async (t) => {
        const own = config === undefined ? {} : { internal_address_config: config };
        const bench = await managerBench(t, { use_remote_address: true, ...own }, BEHIND_PROXY);
        await bench.ask(protocol, from(address));
        const head = bench.head();
        assert.deepEqual(valuesOf(head, INTERNAL), isInside ? ['true'] : []);
        assert.deepEqual(valuesOf(head, EXTERNAL), isInside ? [] : [address]);
      });
    }

    test('by the last hop before it, where only that is believed', async (t) => {
      const fields = { internal_address_config: { unix_sockets: true, ...ranges(['192.0.2.0', 24]) } };
      const bench = await managerBench(t, fields);
      for (const [forwardedFor, isInside] of [
        ['192.0.2.1', true],
        ['10.0.0.1', false],
        ['192.0.2.1, 192.0.2.2', false],
        ['unknown', false],
        ['', false],
      ] as const) {
        await bench.ask(protocol, { headers: [['x-forwarded-for', forwardedFor]] });
        assert.deepEqual(valuesOf(bench.head(), INTERNAL), isInside ? ['true'] : [], forwardedFor);
      }
    });
  });

  describe(`over ${protocol} the scheme`, () => {
    const proto = async (
      t: Parameters<typeof managerBench>[0],
      fields: JsonObject,
      question: Question,
      options = {},
    ) => {
      const bench = await managerBench(t, fields, options);
      await bench.ask(protocol, question);
      return valuesOf(bench.head(), 'x-forwarded-proto');
    };
    const SAID: Question = { headers: [['x-forwarded-proto', 'http']] };

    test('is overwritten, whoever has said another', async (t) => {
      const fields = { scheme_header_transformation: { scheme_to_overwrite: 'https' } };
      assert.deepEqual(await proto(t, fields, {}), ['https']);
      assert.deepEqual(await proto(t, fields, SAID), ['https']);
      assert.deepEqual(await proto(t, { ...fields, use_remote_address: true }, SAID), ['https']);
    });

    test('leads to the route that it means', async (t) => {
      const match = { prefix: '/', headers: [{ name: ':scheme', string_match: { exact: 'https' } }] };
      const routes = [{ match, direct_response: { status: 200, body: { inline_string: 'secured' } } }];
      const bench = await managerBench(t, {
        scheme_header_transformation: { scheme_to_overwrite: 'https' },
        route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
      });
      assert.equal((await bench.ask(protocol)).body, 'secured');
    });

    test('is that of the port that a PROXY header names', async (t) => {
      const forward_proto_config = { https_destination_ports: [443, 8443], http_destination_ports: [80] };
      const fields = { use_remote_address: true, forward_proto_config };
      assert.deepEqual(await proto(t, fields, from('10.0.0.1', 443), BEHIND_PROXY), ['https']);
      assert.deepEqual(await proto(t, fields, from('10.0.0.1', 8443), BEHIND_PROXY), ['https']);
      assert.deepEqual(await proto(t, fields, from('10.0.0.1', 80), BEHIND_PROXY), ['http']);
      assert.deepEqual(await proto(t, fields, from('10.0.0.1', 81), BEHIND_PROXY), ['http']);
      assert.deepEqual(await proto(t, { forward_proto_config }, from('10.0.0.1', 443), BEHIND_PROXY), ['https']);
    });

    test('is not that of a port that nobody has named', async (t) => {
      const bench = await managerBench(t, {});
      const forward_proto_config = { https_destination_ports: [bench.port] };
      await bench.proxy.close();
      const other = await managerBench(
        t,
        { forward_proto_config },
        {
          listener: { addresses: [{ kind: 'ip', ip: '127.0.0.1', port: bench.port }] },
        },
      );
      await other.ask(protocol);
      assert.deepEqual(valuesOf(other.head(), 'x-forwarded-proto'), ['http']);
    });
  });

  describe(`over ${protocol} the port of the client`, () => {
    const SAID: Question = { headers: [['x-forwarded-port', '7']] };
    const cases: readonly [what: string, fields: JsonObject, question: Question, own: boolean, said: string[]][] = [
      ['is not told', {}, {}, false, []],
      ['is told', { append_x_forwarded_port: true }, {}, true, []],
      ['stays as a hop before has told it', { append_x_forwarded_port: true }, SAID, false, ['7']],
      ['is told at the edge', { append_x_forwarded_port: true, use_remote_address: true }, SAID, true, []],
      [
        'stays as a trusted hop has told it',
        { append_x_forwarded_port: true, use_remote_address: true, xff_num_trusted_hops: 1 },
        SAID,
        false,
        ['7'],
      ],
    ];
    for (const [what, fields, question, isOwn, said] of cases) {
      test(what, async (t) => {
        const bench = await managerBench(t, fields);
        await bench.ask(protocol, question);
        assert.deepEqual(valuesOf(bench.head(), 'x-forwarded-port'), isOwn ? [`${bench.port}`] : said);
      });
    }
  });

  describe(`over ${protocol} the service that requests come from`, () => {
    const NAMES = ['user-agent', 'x-proxy-downstream-service-cluster', 'x-proxy-downstream-service-node'];
    const told = async (
      t: Parameters<typeof managerBench>[0],
      serviceCluster: string,
      serviceNode: string,
      headers: [string, string][] = [],
    ) => {
      const bench = await managerBench(t, { add_user_agent: true }, { load: { serviceCluster, serviceNode } });
      await bench.ask(protocol, { headers });
      const head = bench.head();
      return NAMES.map((name) => valuesOf(head, name).join());
    };

    test('is named', async (t) => {
      assert.deepEqual(await told(t, 'shop', 'shop-1'), ['shop', 'shop', 'shop-1']);
    });

    test('is named in place of whatever a client says, but of its agent', async (t) => {
      const said: [string, string][] = [
        ['user-agent', 'curl'],
        ['x-envoy-downstream-service-cluster', 'bank'],
        ['x-proxy-downstream-service-node', 'bank-1'],
      ];
      assert.deepEqual(await told(t, 'shop', 'shop-1', said), ['curl', 'shop', 'shop-1']);
    });

    test('is named where the agent is empty', async (t) => {
      assert.deepEqual(await told(t, 'shop', '', [['user-agent', '']]), ['shop', 'shop', '']);
    });

    test('may have any name', async (t) => {
      const name = Buffer.from('é€').toString('latin1');
      assert.deepEqual(await told(t, 'é€', 'a\tb'), [name, name, 'a?b']);
    });

    test('is not named without a name', async (t) => {
      assert.deepEqual(await told(t, '', 'shop-1'), ['', '', 'shop-1']);
    });
  });

  describe(`over ${protocol} an IPv4 address`, () => {
    const KEY = 'http_connection_manager.represent_ipv4_remote_address_as_ipv4_mapped_ipv6';
    const FIELDS = { use_remote_address: true, represent_ipv4_remote_address_as_ipv4_mapped_ipv6: true };

    test('is written as one of IPv6', async (t) => {
      const bench = await managerBench(t, FIELDS, BEHIND_PROXY);
      await bench.ask(protocol, from('192.0.2.1'));
      const head = bench.head();
      assert.deepEqual(valuesOf(head, 'x-forwarded-for'), ['::ffff:192.0.2.1']);
      assert.deepEqual(valuesOf(head, EXTERNAL), ['::ffff:192.0.2.1']);
      bench.proxy.dataPlane.updateRuntime(new Map([[KEY, '0']]));
      await bench.ask(protocol, from('192.0.2.1'));
      assert.deepEqual(valuesOf(bench.head(), 'x-forwarded-for'), ['192.0.2.1']);
    });

    test('is written so by order of the runtime', async (t) => {
      const bench = await managerBench(t, { use_remote_address: true }, BEHIND_PROXY);
      bench.proxy.dataPlane.updateRuntime(new Map([[KEY, '100']]));
      await bench.ask(protocol, from('192.0.2.1'));
      assert.deepEqual(valuesOf(bench.head(), 'x-forwarded-for'), ['::ffff:192.0.2.1']);
    });

    test('alone is', async (t) => {
      const bench = await managerBench(t, FIELDS, BEHIND_PROXY);
      await bench.ask(protocol, { before: 'PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n' });
      assert.deepEqual(valuesOf(bench.head(), 'x-forwarded-for'), ['2001:db8::1']);
    });
  });

  describe(`over ${protocol} the identifier of a request`, () => {
    test('is told in its response', async (t) => {
      const answer = 'HTTP/1.1 200 OK\r\nx-request-id: upstream\r\ncontent-length: 2\r\n\r\nok';
      const bench = await managerBench(t, { always_set_request_id_in_response: true }, { answer });
      const { headers } = await bench.ask(protocol);
      assert.match(headers['x-request-id']!, UUID);
      assert.deepEqual(valuesOf(bench.head(), 'x-request-id'), [headers['x-request-id']]);
    });

    test('is told in replies of the proxy itself', async (t) => {
      const routes = [{ match: { prefix: '/none' }, direct_response: { status: 204 } }];
      const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
      const bench = await managerBench(t, { always_set_request_id_in_response: true, route_config });
      const question: Question = { headers: [['x-request-id', 'mine']] };
      for (const at of ['/none', '/other']) {
        assert.equal((await bench.ask(protocol, { path: at, ...question })).headers['x-request-id'], 'mine');
      }
    });

    test('is not told otherwise', async (t) => {
      const bench = await managerBench(t, {});
      assert.equal((await bench.ask(protocol)).headers['x-request-id'], undefined);
      assert.equal(valuesOf(bench.head(), 'x-request-id').length, 1);
    });
  });
}

test('clients that come through a pipe are inside where the configuration says so', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-inside-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [config, isInside] of [
    [{ unix_sockets: true }, true],
    [{ unix_sockets: false }, false],
    [{ unix_sockets: true, ...ranges(['192.0.2.0', 24]) }, true],
    [undefined, false],
  ] as const) {
    const socketPath = path.join(folder, `${Math.trunc(performance.now() * 1000)}`);
    const fields = { use_remote_address: true, append_x_forwarded_port: true };
    const own = config === undefined ? fields : { ...fields, internal_address_config: config };
    const listener = { addresses: [{ kind: 'pipe', path: socketPath, mode: 0o600 }] } as const;
    const bench = await managerBench(t, own, { listener });
    const [response] = (await once(request({ socketPath, agent: false }).end(), 'response')) as [IncomingMessage];
    response.resume();
    const head = bench.head();
    assert.deepEqual(valuesOf(head, INTERNAL), isInside ? ['true'] : [], JSON.stringify(config));
    assert.deepEqual(valuesOf(head, 'x-forwarded-port'), []);
  }
});

test('a request of HTTP/1.0 without a host gets one', async (t) => {
  const http_protocol_options = { accept_http_10: true, default_host_for_http_10: 'old.test:8080' };
  const route_config = {
    virtual_hosts: [
      { name: 'old', domains: ['old.test'], routes: [{ match: { prefix: '/' }, route: { cluster: 'web' } }] },
    ],
  };
  const fields = { http_protocol_options, strip_any_host_port: true, route_config };
  const bench = await managerBench(t, fields);
  const ask = async (lines: string): Promise<number> => {
    const client = new WireClient(bench.port);
    const { status } = await client.write(`${lines}\r\n\r\n`).response();
    client.close();
    return status;
  };
  assert.equal(await ask('GET /a HTTP/1.0'), 200);
  assert.match(bench.head(), /^GET \/a HTTP\/1\.1\r\nhost: old\.test\r\n/);
  assert.equal(await ask('GET /a HTTP/1.0\r\nhost: other.test'), 404);
  assert.equal(await ask('GET /a HTTP/1.1'), 400);
});

test('requests of HTTP/1.0 are told to come by HTTP/1.1 where they are not accepted', async (t) => {
  const bench = await managerBench(t, {});
  const client = new WireClient(bench.port);
  t.after(() => client.close());
  // One that keeps its connection has it after that, too.
  for (const head of [
    'POST /a HTTP/1.0\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nab',
    'GET /a HTTP/1.0\r\n\r\n',
  ]) {
    const answer = await client.write(head).response();
    assert.equal(answer.status, 426);
    assert.deepEqual(valuesOf(answer.head, 'upgrade'), ['HTTP/1.1']);
    assert.equal(valuesOf(answer.head, 'connection')[0], 'upgrade');
  }
  assert.equal(await client.rest(), '');
  assert.equal(bench.heads.length, 0);
  assert.equal(bench.proxy.httpStat('downstream_rq_4xx'), 2);
});

describe('a configuration is refused', () => {
  const cases: readonly [what: string, fields: JsonObject, error: RegExp][] = [
    [
      'with a scheme of another kind',
      { scheme_header_transformation: { scheme_to_overwrite: 'ftp' } },
      /scheme_to_overwrite/,
    ],
    [
      'with what is no port',
      { forward_proto_config: { https_destination_ports: [0] } },
      /https_destination_ports\[0\]: 0 is no port/,
    ],
    [
      'with a port of both schemes',
      { forward_proto_config: { https_destination_ports: [443], http_destination_ports: [80, 443] } },
      /http_destination_ports\[1\]: 443 is also a port of HTTPS/,
    ],
    [
      'with a range that is none',
      { internal_address_config: ranges(['192.0.2.0', 33]) },
      /cidr_ranges\[0\]\.prefix_len/,
    ],
    [
      'with a default host that is none',
      { http_protocol_options: { default_host_for_http_10: 'a b' } },
      /default_host_for_http_10: "a b" is no host/,
    ],
  ];
  for (const [what, fields, error] of cases) {
    test(what, () => assert.match(errorsOf(fields), error));
  }
});

test('a service without a name is warned of', () => {
  const result = load(withListeners(listenerWith([httpFilter({ add_user_agent: true })])));
  assert.match(faultTexts(result, 'warning').join('\n'), /add_user_agent: there is no node.cluster/);
});
