// What a connection manager's http_protocol_options ask for, from a configuration to bytes.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type JsonObject, managerFaults } from '../support/bootstrap.ts';
import { managerBench, valuesOf } from '../support/manager-bench.ts';
import { WireClient } from '../support/wire.ts';

const PROPER = { header_key_format: { proper_case_words: {} } };
const PRESERVING = {
  header_key_format: {
    stateful_formatter: {
      name: 'preserve_case',
      typed_config: {
        '@type':
          'type.googleapis.com/envoy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig',
      },
    },
  },
};
const WANTS_H2C_OR_TLS = 'connection: upgrade\r\nupgrade: h2c, TLS/1.3';

async function bench(t: TestContext, options: JsonObject, fields: JsonObject = {}, answer?: string) {
  const made = await managerBench(
    t,
    { http_protocol_options: options, ...fields },
    answer === undefined ? {} : { answer },
  );
  const client = new WireClient(made.port);
  t.after(() => client.close());
  return { ...made, client };
}

function get(...lines: readonly string[]): string {
  return `${['GET / HTTP/1.1', 'host: h', ...lines].join('\r\n')}\r\n\r\n`;
}

/** Names of a head in their order. */
function names(head: string): string[] {
  return head
    .split('\r\n')
    .slice(1, -2)
    .map((line) => line.slice(0, line.indexOf(':')));
}

function faultsOf(options: JsonObject, severity: 'error' | 'warning'): string[] {
  return managerFaults({ http_protocol_options: options }, severity);
}

describe('responses in proper case', () => {
  const ANSWER = 'HTTP/1.1 200 OK\r\nx-one-two: a-b: c\r\nCONTENT-length: 2\r\n\r\nok';

  test('name what an upstream has said and what the proxy adds, and nothing else changes', async (t) => {
    const { client } = await bench(t, PROPER, {}, ANSWER);
    for (let round = 0; round < 2; round += 1) {
      const { head, body } = await client.write(get()).response();
      assert.deepEqual(names(head).toSorted(), [
        'Content-Length',
        'Date',
        'Server',
        'X-One-Two',
        'X-Proxy-Upstream-Service-Time',
      ]);
      assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
      assert.match(head, /\r\nX-One-Two: a-b: c\r\n/);
      assert.equal(body, 'ok');
    }
  });

  test('are those of the proxy itself, too', async (t) => {
    const { client } = await bench(t, PROPER, { route_config: { virtual_hosts: [] } });
    assert.deepEqual(names((await client.write(get()).response()).head), ['Content-Length', 'Date', 'Server']);
    const { head } = await client.write('GET /\u0001 HTTP/1.1\r\n\r\n').response();
    assert.match(head, /^HTTP\/1\.1 400 .*\r\nContent-Length: /);
    assert.match(head, /\r\nConnection: close\r\n/);
  });

  test('are those before the answer', async (t) => {
    const answer = `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${ANSWER}`;
    const { client } = await bench(t, PROPER, { proxy_100_continue: true }, answer);
    client.write(get());
    assert.deepEqual(names(await client.until('\r\n\r\n')), ['Link']);
  });

  test('have bodies of every framing', async (t) => {
    const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n';
    const { client } = await bench(t, PROPER, {}, chunked);
    const response = await client.write(get()).until('\r\n0\r\n\r\n');
    assert.match(response, /\r\nTransfer-Encoding: chunked\r\n/);
    assert.match(response, /\r\n\r\n2\r\nok\r\n0\r\n\r\n$/);
  });

  test('leave HTTP/2 alone', async (t) => {
    const { ask } = await bench(t, PROPER, {}, ANSWER);
    const { status, headers } = await ask('HTTP/2');
    assert.deepEqual([status, headers['x-one-two']], [200, 'a-b: c']);
  });
});

test('names keep their case both ways, asked for or not', async (t) => {
  const answer = 'HTTP/1.1 200 OK\r\nX-oNe: 1\r\nContent-LENGTH: 0\r\n\r\n';
  for (const options of [{}, PRESERVING]) {
    const { client, head } = await bench(t, options, {}, answer);
    const response = await client.write(get('X-tWo: 2')).response();
    assert.ok(names(response.head).includes('X-oNe'));
    assert.deepEqual(names(head()).slice(0, 2), ['host', 'X-tWo']);
  }
  assert.deepEqual(faultsOf(PRESERVING, 'warning'), []);
  assert.deepEqual(faultsOf(PRESERVING, 'error'), []);
});

describe('an upgrade that is ignored', () => {
  const IGNORED = { ignore_http_11_upgrade: [{ exact: 'TLS/1.3' }, { prefix: 'h2', ignore_case: true }] };

  test('is not asked for any more', async (t) => {
    const { client, head } = await bench(t, IGNORED);
    for (const wanted of [WANTS_H2C_OR_TLS, WANTS_H2C_OR_TLS.replace('h2c', 'H2C')]) {
      assert.equal((await client.write(get(wanted, 'x-a: 1')).response()).status, 200);
      const seen = head();
      assert.deepEqual([valuesOf(seen, 'upgrade'), valuesOf(seen, 'connection')], [[], []]);
      assert.deepEqual(valuesOf(seen, 'x-a'), ['1']);
    }
  });

  test('does not take others with it', async (t) => {
    const { client, heads } = await bench(t, IGNORED);
    const { status } = await client.write(get(`${WANTS_H2C_OR_TLS}, websocket`)).response();
    assert.equal(status, 403);
    assert.deepEqual(heads, []);
  });

  test('is refused without that', async (t) => {
    const { client } = await bench(t, {});
    assert.equal((await client.write(get(WANTS_H2C_OR_TLS)).response()).status, 403);
  });

  test('is none of HTTP/2, nor a CONNECT', async (t) => {
    const everything = { ignore_http_11_upgrade: [{ safe_regex: { regex: '.*' } }] };
    const { ask, client } = await bench(t, everything, { upgrade_configs: [{ upgrade_type: 'websocket' }] });
    const connect = await client.write('CONNECT h:80 HTTP/1.1\r\nhost: h:80\r\n\r\n').response();
    assert.equal(connect.status, 403);
    assert.equal((await ask('HTTP/2')).status, 200);
  });

  test('is named by expressions that compile', () => {
    const [fault] = faultsOf({ ignore_http_11_upgrade: [{ safe_regex: { regex: '(' } }] }, 'error');
    assert.match(fault ?? '', /http_protocol_options\.ignore_http_11_upgrade\[0\]\.safe_regex/);
  });
});

describe('a request with a length beside its chunks', () => {
  const BOTH = [
    'POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n',
    '5\r\nhello\r\n0\r\n\r\n',
  ].join('');
  /** What somebody who has read the other length would take for a request. */
  const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nhost: h\r\n\r\n';

  const TYPE = 'type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation';
  const MUTATION = { name: 'early', typed_config: { '@type': TYPE, mutations: [{ remove: 'x-no' }] } };
  for (const [name, request, fields] of [
    ['', BOTH, {}],
    [', also with a long head', BOTH.replace('host: h', `host: h\r\nx-long: ${'a'.repeat(20_000)}`), {}],
    [', also when its head is written and read anew', BOTH, { early_header_mutation_extensions: [MUTATION] }],
  ] as const) {
    test(`goes on by its chunks alone, and is the last of its connection${name}`, async (t) => {
      const { client, heads } = await bench(t, { allow_chunked_length: true }, fields);
      const response = await client.write(request + SMUGGLED).response();
      assert.equal(response.status, 200);
      assert.match(response.head, /\r\nconnection: close\r\n/);
      await client.rest();
      const [seen = ''] = heads;
      assert.deepEqual([valuesOf(seen, 'content-length'), valuesOf(seen, 'transfer-encoding')], [[], ['chunked']]);
      assert.doesNotMatch(heads.join(''), /smuggled/);
    });
  }

  test('is refused without that', async (t) => {
    const { client, heads } = await bench(t, {});
    assert.equal((await client.write(BOTH).response()).status, 400);
    await client.rest();
    assert.deepEqual(heads, []);
  });

  test('has to be of HTTP/1.1, and to be nothing but chunked', async (t) => {
    for (const [from, to] of [
      ['HTTP/1.1', 'HTTP/1.0'],
      ['chunked', 'gzip, chunked'],
      ['transfer-encoding: chunked', 'transfer-encoding: chunked\r\ntransfer-encoding: chunked'],
    ] as const) {
      const { client, heads } = await bench(t, { allow_chunked_length: true, accept_http_10: true });
      assert.notEqual((await client.write(BOTH.replace(from, to)).response()).status, 200);
      await client.rest();
      assert.deepEqual(heads, []);
    }
  });
});

describe('a reply of the proxy itself that says 400', () => {
  const INVALID = 'GET /a%00b HTTP/1.1\r\nhost: h\r\n\r\n';
  const FIELDS = { normalize_path: true };
  const SURVIVES = { override_stream_error_on_invalid_http_message: true };

  for (const [name, options, fields] of [
    ['by default', {}, FIELDS],
    [
      'when the options say so',
      { override_stream_error_on_invalid_http_message: false },
      { ...FIELDS, stream_error_on_invalid_http_message: true },
    ],
  ] as const) {
    test(`ends the connection: ${name}`, async (t) => {
      const { client } = await bench(t, options, fields);
      const { status, head } = await client.write(INVALID).response();
      assert.equal(status, 400);
      assert.match(head, /\r\nconnection: close\r\n/);
      await client.rest();
    });
  }

  for (const [name, options, fields] of [
    ['by the options', SURVIVES, FIELDS],
    ['by the connection manager', {}, { ...FIELDS, stream_error_on_invalid_http_message: true }],
  ] as const) {
    test(`leaves the connection: ${name}`, async (t) => {
      const { client } = await bench(t, options, fields);
      const { status, head } = await client.write(INVALID).response();
      assert.equal(status, 400);
      assert.doesNotMatch(head, /\r\nconnection:/);
      assert.equal((await client.write(get()).response()).status, 200);
    });
  }

  test('ends it all the same behind what cannot be read', async (t) => {
    const { client } = await bench(t, SURVIVES, FIELDS);
    assert.equal((await client.write('GET /\u0001 HTTP/1.1\r\n\r\n').response()).status, 400);
    await client.rest();
  });

  test('ends it too where a route or a filter says so, unless those options say otherwise', async (t) => {
    const route_config = {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 400 } }] },
      ],
    };
    const ended = await bench(t, {}, { route_config });
    assert.equal((await ended.client.write(get()).response()).status, 400);
    await ended.client.rest();
    const { client } = await bench(t, SURVIVES, { route_config });
    for (let round = 0; round < 2; round += 1) assert.equal((await client.write(get()).response()).status, 400);
  });

  test('is what it was before its mappers', async (t) => {
    const turning = (from: number, status_code: number): JsonObject => {
      const value = { default_value: from, runtime_key: 'never.set' };
      const filter = { status_code_filter: { comparison: { op: 'EQ', value } } };
      return { local_reply_config: { mappers: [{ filter, status_code }] } };
    };
    const told = await bench(t, {}, { ...FIELDS, ...turning(400, 404) });
    const { status, head } = await told.client.write(INVALID).response();
    assert.equal(status, 404);
    assert.match(head, /\r\nconnection: close\r\n/);
    await told.client.rest();
    const { client } = await bench(t, {}, { route_config: { virtual_hosts: [] }, ...turning(404, 400) });
    for (let round = 0; round < 2; round += 1) assert.equal((await client.write(get()).response()).status, 400);
  });

  test('leaves the connection of a reply that says something else', async (t) => {
    const { client } = await bench(t, {}, { route_config: { virtual_hosts: [] } });
    for (let round = 0; round < 2; round += 1) assert.equal((await client.write(get()).response()).status, 404);
  });
});

describe('an option without effect', () => {
  for (const [name, options, reason] of [
    ['of targets', { allow_absolute_url: false }, /allow_absolute_url: .*each server/],
  ] as const) {
    test(`is warned of with its reason: ${name}`, () => assert.match(faultsOf(options, 'warning').join('\n'), reason));
  }

  test('is taken where it changes nothing', () => {
    const options = {
      allow_custom_methods: true,
      use_balsa_parser: true,
      allow_absolute_url: true,
      send_fully_qualified_url: true,
      accept_http_10: true,
      allow_chunked_length: true,
      override_stream_error_on_invalid_http_message: true,
    };
    assert.deepEqual([...faultsOf(options, 'warning'), ...faultsOf(options, 'error')], []);
  });
});
