// Bodies that the compressor filter makes smaller, through the whole proxy: who gets which encoding, what is left alone, what
// the heads say, and what is counted.

import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { Json, JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { type Answer, decoded, type LibraryKind, libraryOf, readAnswer } from '../support/recoded-bodies.ts';
import { WireClient } from '../support/wire.ts';

const TYPE = 'compressor.v3.Compressor';
const TEXT = Array.from({ length: 400 }, (_, line) => `line ${line} of a text that repeats itself\n`).join('');

function compressor(kind: LibraryKind, fields: JsonObject = {}): JsonObject {
  return filterOf(TYPE, {
    compressor_library: libraryOf('compressor', kind),
    response_direction_config: {},
    ...fields,
  });
}

/** What the upstream answers, by its path. */
type Handler = (response: ServerResponse, headers: IncomingHttpHeaders) => void;

function answering(headers: Record<string, string>, status = 200, body: string = TEXT): Handler {
  const whole = { 'content-type': 'text/plain', 'content-length': String(Buffer.byteLength(body)), ...headers };
  return (response) => void response.writeHead(status, whole).end(body);
}

const HANDLERS: Record<string, Handler> = {
  '/text': answering({}),
  '/image': answering({ 'content-type': 'image/png' }),
  '/charset': answering({ 'content-type': 'Text/HTML; charset=utf-8' }),
  '/short': answering({}, 200, 'x'.repeat(29)),
  '/long-enough': answering({}, 200, 'x'.repeat(30)),
  '/encoded': answering({ 'content-encoding': 'deflate' }),
  '/no-transform': answering({ 'cache-control': 'public, No-Transform' }),
  '/strong': answering({ etag: '"abc"', 'accept-ranges': 'bytes' }),
  '/weak': answering({ etag: 'W/"abc"' }),
  '/vary': answering({ vary: 'Origin' }),
  '/vary-encoding': answering({ vary: 'origin, accept-encoding' }),
  '/vary-all': answering({ vary: '*' }),
  '/partial': answering({ 'content-range': `bytes 0-${TEXT.length - 1}/${TEXT.length}` }, 206),
  '/gone': answering({}, 410),
  '/none': (response) => void response.writeHead(204, { 'content-type': 'text/plain' }).end(),
  '/same': (response) => void response.writeHead(304, { 'content-type': 'text/plain', etag: '"abc"' }).end(),
  '/untyped': (response) => void response.writeHead(200, { 'content-length': String(TEXT.length) }).end(TEXT),
  '/trailers': (response) => {
    response.writeHead(200, { 'content-type': 'text/plain', trailer: 'x-sum' });
    response.write(TEXT);
    response.addTrailers({ 'x-sum': '7' });
    response.end();
  },
  '/heard': (response, headers) =>
    answering({}, 200, `${headers['accept-encoding'] ?? 'nothing'}${' '.repeat(60)}`)(response, headers),
};

describe('the compressor filter', () => {
  let upstream: Server;
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  const clients = new Map<string, WireClient>();
  let held: ServerResponse | null = null;

  before(async () => {
    upstream = createServer((request, response) => {
      const [path = ''] = (request.url ?? '').split('?');
      if (path === '/held') {
        response.writeHead(200, { 'content-type': 'text/plain' });
        response.flushHeaders();
        held = response;
      } else (HANDLERS[path] ?? HANDLERS['/text']!)(response, request.headers);
    });
    upstream.listen(0, '127.0.0.1');
    await new Promise((resolve) => upstream.once('listening', resolve));
    const { port } = upstream.address() as AddressInfo;
    const perRoute = 'compressor.v3.CompressorPerRoute';
    const routes = [
      routeTo('/off', { compressor: typed(perRoute, { disabled: true }) }),
      routeTo('/brotli', {
        compressor: typed(perRoute, { overrides: { compressor_library: libraryOf('compressor', 'brotli') } }),
      }),
      routeTo('/kept', {
        compressor: typed(perRoute, {
          overrides: { response_direction_config: { remove_accept_encoding_header: false } },
        }),
      }),
      { match: { path: '/direct' }, direct_response: { status: 200, body: { inline_string: TEXT.slice(0, 4000) } } },
      routeTo('/'),
    ];
    const manager: JsonObject = { http_protocol_options: { enable_trailers: true, accept_http_10: true } };
    const listener = (name: string, filters: JsonObject[], host: JsonObject = {}): JsonObject =>
      filteredListener(filters, routes, { manager: { ...manager, stat_prefix: name }, host, listener: { name } });
    const runtimeKey = (key: string, byDefault = true): Json => ({ default_value: byDefault, runtime_key: key });
    const listeners = [
      listener('gzip', [compressor('gzip')]),
      listener('older', [
        filterOf(TYPE, {
          compressor_library: libraryOf('compressor', 'gzip', {}, 'text'),
          content_length: 1000,
          content_type: ['image/png'],
        }),
      ]),
      listener('older_gzip', [
        filterOf('gzip.v3.Gzip', {
          compression_level: 'BEST',
          compressor: { content_length: 20, remove_accept_encoding_header: true },
        }),
      ]),
      listener('etag', [
        compressor('gzip', {
          response_direction_config: { disable_on_etag_header: true, status_header_enabled: true },
        }),
      ]),
      listener('weakened', [
        compressor('gzip', {
          response_direction_config: { disable_on_etag_header: true, weaken_etag_on_compress: true },
        }),
      ]),
      listener('strict', [
        compressor('gzip', {
          response_direction_config: {
            common_config: { min_content_length: 100, content_type: ['text/plain'] },
            uncompressible_response_codes: [410],
            status_header_enabled: true,
            remove_accept_encoding_header: true,
          },
        }),
      ]),
      listener('all', [compressor('gzip'), compressor('brotli'), compressor('zstd')]),
      listener('first', [
        compressor('gzip'),
        compressor('brotli', { choose_first: true }),
        compressor('zstd', { choose_first: true }),
      ]),
      listener('switched', [
        compressor('gzip', { response_direction_config: { common_config: { enabled: runtimeKey('compress.off') } } }),
      ]),
    ];
    proxy = await createProxy(
      bootstrapOf(
        listeners,
        [
          {
            ...clusterAt('web', port),
            typed_extension_protocol_options: {
              'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
                '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
                explicit_http_config: { http_protocol_options: { enable_trailers: true } },
              },
            },
          },
        ],
        {
          stats_flush_on_admin: true,
          layered_runtime: { layers: [{ name: 'own', static_layer: { compress: { off: 'false' } } }] },
        },
      ),
    );
  });

  after(async () => {
    for (const client of clients.values()) client.close();
    await proxy?.close();
    upstream?.closeAllConnections();
    upstream?.close();
  });

  function clientOf(listener: string): WireClient {
    let client = clients.get(listener);
    if (client === undefined) {
      client = new WireClient(proxy.listeners.get(listener)!.port);
      clients.set(listener, client);
    }
    return client;
  }

  async function ask(
    path: string,
    accept: string | null = 'gzip',
    { listener = 'gzip', method = 'GET', version = '1.1' } = {},
  ): Promise<Answer> {
    const client = clientOf(listener);
    const field = accept === null ? '' : `accept-encoding: ${accept}\r\n`;
    client.write(`${method} ${path} HTTP/${version}\r\nhost: a\r\n${field}\r\n`);
    return readAnswer(client, method !== 'HEAD');
  }

  const count = (name: string, listener = 'gzip'): number => proxy.stats.value(`http.${listener}.${name}`) ?? -1;
  const RESPONSE = 'compressor.gzip.gzip.response.';

  async function counted(
    names: string[],
    act: () => Promise<unknown>,
    listener = 'gzip',
    prefix = RESPONSE,
  ): Promise<number[]> {
    const before = names.map((name) => count(prefix + name, listener));
    await act();
    return names.map((name, index) => count(prefix + name, listener) - before[index]!);
  }

  it('compresses what clients want to have compressed, with its length where it has it all', async () => {
    const answer = await ask('/text');
    const { headers, body } = answer;
    assert.equal(headers['content-encoding'], 'gzip');
    assert.equal(headers['content-length'], String(body.length));
    assert.equal(headers['transfer-encoding'], undefined);
    assert.equal(headers.vary, 'Accept-Encoding');
    assert.ok(body.length < TEXT.length / 4);
    assert.equal(decoded(answer), TEXT);
    assert.equal((await ask('/text', 'x-gzip')).headers['content-encoding'], 'gzip');
  });

  it('counts what it does', async () => {
    const names = ['compressed', 'not_compressed', 'total_uncompressed_bytes', 'header_compressor_used'];
    assert.deepEqual(await counted(names, () => ask('/text')), [1, 0, TEXT.length, 1]);
    let bytes = 0;
    const [compressed] = await counted(['total_compressed_bytes'], async () => {
      bytes = (await ask('/text')).body.length;
    });
    assert.equal(compressed, bytes);
  });

  const LEFT_ALONE: [path: string, accept: string | null, why: string, stat: string, vary: string | undefined][] = [
    ['/text', null, 'the client says nothing', 'no_accept_header', 'Accept-Encoding'],
    ['/text', 'identity', 'the client wants none', 'header_identity', 'Accept-Encoding'],
    ['/text', 'br', 'the client wants another', 'header_not_valid', 'Accept-Encoding'],
    ['/text', 'gzip;q=0, *;q=1', 'the client refuses it by name', 'header_not_valid', 'Accept-Encoding'],
    ['/text', 'gzip;q=0.5, identity', 'the client likes none better', 'header_identity', 'Accept-Encoding'],
    ['/image', 'gzip', 'its type is another', 'header_compressor_used', undefined],
    ['/short', 'gzip', 'it is too short', 'content_length_too_small', undefined],
    ['/encoded', 'gzip', 'it is encoded already', 'header_compressor_used', undefined],
    ['/no-transform', 'gzip', 'it is not to be changed', 'header_compressor_used', undefined],
    ['/partial', 'gzip', 'it is a part', 'not_compressed', undefined],
  ];
  for (const [path, accept, why, stat, vary] of LEFT_ALONE) {
    it(`leaves a response alone when ${why}: ${path}, ${accept}`, async () => {
      let answer: Answer | null = null;
      const counts = await counted([stat, 'not_compressed', 'compressed'], async () => {
        answer = await ask(path, accept);
      });
      const { headers, body } = answer! as Answer;
      assert.equal(headers['content-length'], String(body.length));
      assert.notEqual(headers['content-encoding'], 'gzip');
      assert.equal(headers.vary, vary);
      assert.deepEqual(counts, [1, 1, 0]);
    });
  }

  for (const [path, accept] of [
    ['/charset', 'gzip'],
    ['/untyped', 'gzip'],
    ['/long-enough', 'gzip'],
    ['/gone', 'gzip'],
    ['/text', 'deflate, gzip;q=0.5, br'],
    ['/text', '*;q=0, gzip;q=1'],
    ['/text', '*'],
    ['/text', 'GZIP ; Q=0.001'],
  ] as const) {
    it(`compresses ${path} for ${accept}`, async () => {
      assert.equal((await ask(path, accept)).headers['content-encoding'], 'gzip');
    });
  }

  it('leaves answers alone that have no body', async () => {
    assert.equal((await ask('/none')).status, 204);
    const same = await ask('/same');
    assert.deepEqual([same.status, same.headers.etag, same.headers['content-encoding']], [304, '"abc"', undefined]);
    // As the answer would say that it stands for.
    assert.equal(same.headers.vary, 'Accept-Encoding');
    assert.equal(decoded(await ask('/text')), TEXT);
  });

  it('answers a HEAD without a length that a GET would not have', async () => {
    const { headers } = await ask('/text', 'gzip', { method: 'HEAD' });
    assert.deepEqual([headers['content-length'], headers.vary], [undefined, 'Accept-Encoding']);
    assert.equal((await ask('/text', 'br', { method: 'HEAD' })).headers['content-length'], String(TEXT.length));
    assert.equal((await ask('/image', 'gzip', { method: 'HEAD' })).headers['content-length'], String(TEXT.length));
  });

  it('takes strong validators and ranges away, or weakens the validator, or leaves such responses alone', async () => {
    const { headers } = await ask('/strong');
    assert.deepEqual(
      [headers.etag, headers['accept-ranges'], headers['content-encoding']],
      [undefined, undefined, 'gzip'],
    );
    assert.equal((await ask('/weak')).headers.etag, 'W/"abc"');
    const weakened = await ask('/strong', 'gzip', { listener: 'weakened' });
    assert.deepEqual([weakened.headers.etag, decoded(weakened)], ['W/"abc"', TEXT]);
    const left = await ask('/strong', 'gzip', { listener: 'etag' });
    assert.deepEqual([left.headers.etag, left.headers['content-encoding']], ['"abc"', undefined]);
    assert.equal(left.headers['x-proxy-compression-status'], 'gzip;EtagNotAllowed');
    assert.equal(count(`${RESPONSE}not_compressed_etag`, 'etag'), 1);
  });

  it('adds to Vary what it does not say', async () => {
    assert.equal((await ask('/vary')).headers.vary, 'Origin, Accept-Encoding');
    assert.equal((await ask('/vary-encoding')).headers.vary, 'origin, accept-encoding');
    assert.equal((await ask('/vary-all')).headers.vary, '*');
  });

  it('says what has become of a response, where it is asked to', async () => {
    const statusOf = async (path: string): Promise<string | undefined> =>
      (await ask(path, 'gzip', { listener: 'strict' })).headers['x-proxy-compression-status'];
    assert.equal(await statusOf('/text'), `gzip;Compressed;OriginalLength=${TEXT.length}`);
    assert.equal(await statusOf('/short'), 'gzip;ContentLengthTooSmall');
    assert.equal(await statusOf('/charset'), 'gzip;ContentTypeNotAllowed');
    assert.equal(await statusOf('/gone'), 'gzip;StatusCodeNotAllowed');
    assert.equal((await ask('/text')).headers['x-proxy-compression-status'], undefined);
  });

  it('keeps upstreams from compressing, where it is asked to', async () => {
    assert.equal(decoded(await ask('/heard', 'gzip')).trim(), 'gzip');
    assert.equal((await ask('/heard', 'gzip', { listener: 'strict' })).body.toString().trim(), 'nothing');
  });

  it('passes trailers on', async () => {
    const answer = await ask('/trailers');
    assert.equal(decoded(answer), TEXT);
    assert.ok('trailer x-sum: 7' in answer.headers);
  });

  it('ends a body for clients of HTTP/1.0 by its length, or with the connection', async () => {
    const whole = new WireClient(proxy.listeners.get('gzip')!.port);
    const text = await whole.write('GET /text HTTP/1.0\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n').rest();
    const head = text.slice(0, text.indexOf('\r\n\r\n'));
    assert.match(head, /content-length: \d+/);
    assert.doesNotMatch(head, /transfer-encoding/);
    whole.close();
    const open = new WireClient(proxy.listeners.get('gzip')!.port);
    const other = await open.write('GET /trailers HTTP/1.0\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n').rest();
    assert.doesNotMatch(other.slice(0, other.indexOf('\r\n\r\n')), /transfer-encoding|content-length/);
    const body = Buffer.from(other.slice(other.indexOf('\r\n\r\n') + 4), 'latin1');
    assert.equal(gunzipSync(body).toString(), TEXT);
    open.close();
  });

  it('sends on each piece of a response that is still being written', async () => {
    const client = clientOf('gzip');
    client.write('GET /held HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n');
    // The head goes first: nobody knows when there will be more.
    assert.match(await client.until('\r\n\r\n'), /content-encoding: gzip/);
    const pieces: Buffer[] = [];
    for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
      held!.write(event);
      pieces.push(await client.bytes(Number.parseInt(await client.until('\r\n'), 16)));
      await client.bytes(2);
      const soFar = gunzipSync(Buffer.concat(pieces), { finishFlush: 2 }).toString();
      assert.ok(soFar.endsWith(event), soFar);
    }
    held!.end();
    await client.until('0\r\n\r\n');
  });

  it('obeys the runtime, and routes before it', async () => {
    assert.equal((await ask('/text', 'gzip', { listener: 'switched' })).headers['content-encoding'], undefined);
    assert.equal((await ask('/kept', 'gzip', { listener: 'switched' })).headers['content-encoding'], 'gzip');
    assert.equal((await ask('/off')).headers['content-encoding'], undefined);
    const brotli = await ask('/brotli', 'gzip, br');
    assert.deepEqual([brotli.headers['content-encoding'], decoded(brotli)], ['br', TEXT]);
    assert.equal((await ask('/brotli')).headers['content-encoding'], undefined);
  });

  it('does not touch replies of the proxy itself', async () => {
    const { headers, body } = await ask('/direct');
    assert.deepEqual([headers['content-encoding'], body.toString()], [undefined, TEXT.slice(0, 4000)]);
  });

  it('reads the fields from before directions, and counts without them', async () => {
    const ofOlder = { listener: 'older' };
    assert.equal((await ask('/image', 'gzip', ofOlder)).headers['content-encoding'], 'gzip');
    assert.equal((await ask('/text', 'gzip', ofOlder)).headers['content-encoding'], undefined);
    assert.equal(count('compressor.text.gzip.compressed', 'older'), 1);
  });

  it('is the gzip filter of older configurations, too', async () => {
    assert.equal(decoded(await ask('/short', 'gzip', { listener: 'older_gzip' })), 'x'.repeat(29));
    assert.equal((await ask('/heard', 'gzip', { listener: 'older_gzip' })).headers['content-encoding'], 'gzip');
    assert.deepEqual(
      ['compressed', 'header_gzip'].map((name) => count(`gzip.${name}`, 'older_gzip')),
      [2, 2],
    );
  });

  for (const [accept, wanted] of [
    ['gzip, br, zstd', 'gzip'],
    ['br, gzip, zstd', 'br'],
    ['gzip;q=0.5, br;q=0.7, zstd;q=0.6', 'br'],
    ['gzip;q=0.5, *;q=0.7', 'br'],
    ['*', 'gzip'],
    ['zstd', 'zstd'],
    ['br;q=0, *', 'gzip'],
    ['identity;q=0.5, zstd;q=0.4', undefined],
    ['snappy', undefined],
  ] as const) {
    it(`chooses ${wanted ?? 'none'} among several for ${accept}`, async () => {
      const answer = await ask('/text', accept, { listener: 'all' });
      assert.equal(answer.headers['content-encoding'], wanted);
      assert.equal(answer.headers.vary, 'Accept-Encoding');
      assert.equal(decoded(answer), TEXT);
    });
  }

  it('prefers, among equals, what is to be chosen first', async () => {
    const encodingFor = async (accept: string): Promise<string | undefined> =>
      (await ask('/text', accept, { listener: 'first' })).headers['content-encoding'];
    assert.equal(await encodingFor('gzip, br, zstd'), 'zstd');
    assert.equal(await encodingFor('gzip, br'), 'br');
    assert.equal(await encodingFor('gzip, br;q=0.9'), 'gzip');
    assert.equal(await encodingFor('*'), 'zstd');
  });

  it('counts whom another has got before', async () => {
    const prefix = (kind: string): string => `compressor.${kind}.${kind}.response.`;
    const shadowed = await counted(
      ['header_compressor_overshadowed'],
      () => ask('/text', 'br, gzip', { listener: 'all' }),
      'all',
      prefix('gzip'),
    );
    assert.deepEqual(shadowed, [1]);
  });
});
