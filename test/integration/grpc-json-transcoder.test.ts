// Clients of HTTP and JSON in front of a service of gRPC, by real servers on both sides.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Client, credentials } from '@grpc/grpc-js';
import { BOOKSHOP, type Bookshop, openBookshop, SHOP } from '../support/bookshop.ts';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, ConfigError, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';

const TYPE = 'grpc_json_transcoder.v3.GrpcJsonTranscoder';
const HTTP_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const BASE = { proto_descriptor: BOOKSHOP, services: ['bookshop.Shop'], match_incoming_request_route: true };

let shop: Bookshop;
before(async () => {
  shop = await openBookshop();
});
after(async () => shop[Symbol.asyncDispose]());

function cluster(): JsonObject {
  const options = {
    '@type': `type.googleapis.com/${HTTP_OPTIONS}`,
    explicit_http_config: { http2_protocol_options: {} },
  };
  return clusterAt('web', shop.port, { typed_extension_protocol_options: { [HTTP_OPTIONS]: options } });
}

async function start(fields: JsonObject = {}, routes: readonly JsonObject[] = [routeTo('/')]) {
  const listener = filteredListener([filterOf(TYPE, { ...BASE, ...fields })], routes);
  const proxy = await createProxy(bootstrapOf([listener], [cluster()]));
  shop.asked.length = 0;
  return proxy;
}

type Proxy_ = Awaited<ReturnType<typeof start>>;

async function ask(proxy: Proxy_, path: string, body?: unknown, method = body === undefined ? 'GET' : 'POST') {
  const url = `${proxy.listeners.get('main')!.url}${path}`;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(url, { method, ...(body === undefined ? {} : { body: text }) });
  return { status: response.status, type: response.headers.get('content-type'), response, text: await response.text() };
}

describe('requests become messages', () => {
  it('by path and query, with fields inside of others, lists and enums', async () => {
    await using proxy = await start();
    const target = '/v1/shelves/3/books/7?view.with_authors=true&view.fields=a&view.fields=b%20c';
    const { status, type, text } = await ask(proxy, target);
    assert.deepEqual([status, type], [200, 'application/json']);
    assert.deepEqual(JSON.parse(text), { id: '7', title: 'book 7 of 3', genre: 'GENRE_NOVEL' });
    const view = { withAuthors: true, fields: ['a', 'b c'] };
    assert.deepEqual(shop.asked, [['GetBook', { shelf: 3, book: 7, view }]]);
  });

  it('by a body that is one field, beside the path', async () => {
    await using proxy = await start();
    const book = { title: 'Emma', authors: ['Jane Austen'], printed: '1815-12-23T00:00:00Z', genre: 'GENRE_NOVEL' };
    const { status, text } = await ask(proxy, '/v1/shelves/5/books', book);
    assert.deepEqual([status, JSON.parse(text)], [200, { id: '9', ...book }]);
    assert.equal(shop.asked[0]![1].shelf, 5);
  });

  it('by a whole body, with a verb at the end of the path', async () => {
    await using proxy = await start();
    const { text } = await ask(proxy, '/v1/books:find', { titlePart: 'SAND' });
    assert.deepEqual(JSON.parse(text), [{ title: 'Sanditon' }]);
    assert.deepEqual(shop.asked, [['FindBooks', { titlePart: 'SAND' }]]);
  });

  it('with names of enums in any case, where that is wanted', async () => {
    await using proxy = await start({ case_insensitive_enum_parsing: true });
    const genreOf = async (genre: unknown) =>
      JSON.parse((await ask(proxy, '/v1/shelves/5/books', { title: 'Emma', genre })).text).genre as unknown;
    for (const genre of ['GENRE_NOVEL', 'genre_novel', 'Genre-Novel', 1]) {
      assert.equal(await genreOf(genre), 'GENRE_NOVEL', String(genre));
    }
    assert.equal((await ask(proxy, '/v1/shelves/5/books', { genre: 'novel' })).status, 400);
    shop.asked.length = 0;
    await ask(proxy, '/v1/books?genre=genre_novel');
    assert.equal(shop.asked[0]![1].genre, 1);
    await ask(proxy, '/v1/books:add', [{ genre: 'genre_novel' }]);
    assert.equal(shop.asked[1]![1].genre, 1);
    await using strict = await start();
    assert.equal((await ask(strict, '/v1/shelves/5/books', { genre: 'genre_novel' })).status, 400);
  });

  it('by paths whose verb is that of a method, or any verb where that is wanted', async () => {
    const fields = { request_validation_options: { reject_unknown_method: true } };
    await using known = await start(fields);
    assert.equal((await ask(known, '/v1/covers/a:b')).text, 'a:b');
    assert.equal((await ask(known, '/v1/covers/a:b/c')).text, 'a:b/c');
    assert.equal((await ask(known, '/v1/covers/a:find')).status, 404, 'the verb of another');
    assert.equal((await ask(known, '/v1/books:find', {})).status, 200);
    assert.equal((await ask(known, '/v1/books:', {})).status, 404);
    await using any = await start({ ...fields, match_unregistered_custom_verb: true });
    assert.equal((await ask(any, '/v1/covers/a:b')).status, 404);
    assert.equal((await ask(any, '/v1/covers/a:b/c')).text, 'a:b/c');
    assert.equal((await ask(any, '/v1/books:find', {})).status, 200);
  });

  it('one for each element of an array, when clients stream', async () => {
    await using proxy = await start();
    const books = [{ title: 'a,]"' }, { title: 'b', authors: ['[', '}'] }, {}];
    const { text } = await ask(proxy, '/v1/books:add', JSON.stringify(books, null, 2));
    assert.deepEqual(JSON.parse(text), { count: 3 });
    assert.deepEqual(
      shop.asked.map(([, book]) => book),
      [{ title: 'a,]"' }, { title: 'b', authors: ['[', '}'] }, {}],
    );
  });

  it('of several segments, in which escaped slashes stay escaped', async () => {
    await using proxy = await start();
    const { type, text } = await ask(proxy, '/v1/covers/a/b%2Fc/d%20e');
    assert.deepEqual([type, text], ['image/x-test', 'a/b%2Fc/d e']);
    await using whole = await start({ url_unescape_spec: 'ALL_CHARACTERS' });
    assert.equal((await ask(whole, '/v1/covers/a/b%2Fc')).text, 'a/b/c');
  });

  it('which logs tell of as calls, by the path of the method and by how they have ended', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-transcoder-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'log');
    const log = {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
      path: file,
      log_format: { text_format_source: { inline_string: '%REQ(:PATH)% %RESPONSE_CODE% %GRPC_STATUS%\n' } },
    };
    const manager = { access_log: [{ name: 'envoy.access_loggers.file', typed_config: log }] };
    const listener = filteredListener([filterOf(TYPE, BASE)], [routeTo('/')], { manager });
    const proxy = await createProxy(bootstrapOf([listener], [cluster()]));
    await ask(proxy, '/v1/shelves/3/books/7');
    await ask(proxy, '/v1/shelves/3/books/404');
    await ask(proxy, '/v1/books?title_part=em');
    await ask(proxy, '/unknown');
    await proxy.close();
    assert.deepEqual(readFileSync(file, 'utf8').trim().split('\n').sort(), [
      '/bookshop.Shop/FindBooks 200 OK',
      '/bookshop.Shop/GetBook 200 OK',
      '/bookshop.Shop/GetBook 404 NotFound',
      '/unknown 415 -',
    ]);
  });

  it('which the filters behind count as calls, whatever the type of the request', async () => {
    const counting = filterOf('grpc_stats.v3.FilterConfig', {
      stats_for_all_methods: true,
    });
    const listener = filteredListener([filterOf(TYPE, BASE), counting], [routeTo('/')]);
    await using proxy = await createProxy(bootstrapOf([listener], [cluster()]));
    await ask(proxy, '/v1/shelves/3/books/7');
    await ask(proxy, '/v1/shelves/3/books/404');
    const counted = ['success', 'failure'].map((end) => `cluster.web.grpc.bookshop.Shop.GetBook.${end}`);
    for (const name of counted) await untilEqual(1, () => proxy.stats.value(name) ?? 0, name);
  });

  it('of methods without a rule, when all are mapped', async () => {
    await using proxy = await start({ auto_mapping: true });
    const { text } = await ask(proxy, '/bookshop.Shop/CountBooks', { shelf: 4 });
    assert.deepEqual([JSON.parse(text), shop.asked], [{ count: 3 }, [['CountBooks', { shelf: 4 }]]]);
  });
});

describe('requests that do not fit', () => {
  const cases: readonly [what: string, path: string, body: unknown, status: number, text: RegExp][] = [
    ['no JSON', '/v1/shelves/5/books', '{"title"', 400, /JSON/],
    ['a field that is not there', '/v1/shelves/5/books', { name: 'x' }, 400, /unknown field: "name"/],
    ['a value of another type', '/v1/shelves/x/books/7', undefined, 400, /shelf/],
    ['no object', '/v1/books:find', [1], 400, /no JSON object/],
    ['no array', '/v1/books:add', { a: 1 }, 400, /JSON array/],
    ['an array without an end', '/v1/books:add', '[{"title":"a"}', 400, /no end/],
    ['an array that lacks an element', '/v1/books:add', '[{},,{}]', 400, /lacks an element/],
  ];
  for (const [what, path, body, status, text] of cases) {
    it(`are answered ${status}: ${what}`, async () => {
      await using proxy = await start();
      const answer = await ask(proxy, path, body);
      assert.equal(answer.status, status);
      assert.match(answer.text, text);
      assert.equal(shop.asked.length, 0);
    });
  }

  it('go on as they came, or are refused where that is wanted', async () => {
    await using proxy = await start();
    // The service, which speaks gRPC alone, refuses them by its own protocol.
    assert.equal((await ask(proxy, '/v2/books')).status, 415);
    assert.equal((await ask(proxy, '/v1/books?unknown=1')).status, 415);
    const strict = { reject_unknown_method: true, reject_unknown_query_parameters: true };
    await using strictly = await start({ request_validation_options: strict });
    assert.equal((await ask(strictly, '/v2/books')).status, 404);
    const refused = await ask(strictly, '/v1/books?unknown=1');
    assert.deepEqual([refused.status, refused.text], [400, 'unknown query parameter unknown']);
    await using ignoring = await start({ ignore_unknown_query_parameters: true });
    assert.equal((await ask(ignoring, '/v1/books?unknown=1')).status, 200);
    await using ignored = await start({ ignored_query_parameters: ['key'] });
    assert.equal((await ask(ignored, '/v1/books?key=1')).status, 200);
  });

  it('are refused where body and path name the same field, if that is wanted', async () => {
    await using lenient = await start();
    assert.equal((await ask(lenient, '/v1/books:find?title_part=a', { title_part: 'b' })).status, 200);
    assert.deepEqual(shop.asked[0]![1], { titlePart: 'a' });
    await using proxy = await start({ request_validation_options: { reject_binding_body_field_collisions: true } });
    const { status, text } = await ask(proxy, '/v1/books:find?title_part=a', { titlePart: 'b' });
    assert.deepEqual([status, text], [400, 'title_part stands both in the body and in path or query']);
  });

  it('are answered 413 beyond a limit, which may be another one', async () => {
    const title = 'x'.repeat(2000);
    await using proxy = await start({ max_request_body_size: 1000 });
    assert.equal((await ask(proxy, '/v1/shelves/5/books', { title })).status, 413);
    assert.equal((await ask(proxy, '/v1/shelves/5/books', { title: 'x' })).status, 200);
  });
});

describe('answers become JSON', () => {
  it('as an array, lines or events, when services stream', async () => {
    await using proxy = await start();
    const [all, none] = [await ask(proxy, '/v1/books'), await ask(proxy, '/v1/books?title_part=zzz')];
    assert.deepEqual(
      JSON.parse(all.text).map(({ title }: { title: string }) => title),
      ['Emma', 'Persuasion', 'Sanditon'],
    );
    assert.deepEqual([none.status, none.text], [200, '[]']);
    await using lines = await start({ print_options: { stream_newline_delimited: true } });
    assert.equal((await ask(lines, '/v1/books?titlePart=s')).text, '{"title":"Persuasion"}\n{"title":"Sanditon"}\n');
    await using events = await start({ print_options: { stream_sse_style_delimited: true } });
    const { type, text } = await ask(events, '/v1/books?title_part=emma');
    assert.deepEqual([type, text], ['text/event-stream', 'data: {"title":"Emma"}\n\n']);
  });

  it('in the form that is asked for', async () => {
    const print = {
      add_whitespace: true,
      always_print_primitive_fields: true,
      always_print_enums_as_ints: true,
      preserve_proto_field_names: true,
    };
    await using proxy = await start({ print_options: print });
    const { text } = await ask(proxy, '/v1/shelves/3/books/7');
    assert.match(text, /^\{\n /);
    const book = { id: '7', title: 'book 7 of 3', genre: 1, authors: [], is_lent: false };
    assert.deepEqual(JSON.parse(text), book);
  });

  it('with the status of HTTP that says what the call says, and its own status where that is wanted', async () => {
    await using proxy = await start();
    const plain = await ask(proxy, '/v1/shelves/3/books/404');
    assert.deepEqual([plain.status, plain.text], [404, '']);
    assert.equal(plain.response.headers.get('grpc-status'), '5');
    assert.equal(decodeURIComponent(plain.response.headers.get('grpc-message')!), 'nö such book');
    await using telling = await start({ convert_grpc_status: true });
    const told = await ask(telling, '/v1/shelves/3/books/404');
    assert.deepEqual([told.status, JSON.parse(told.text)], [404, { code: 5, message: 'nö such book' }]);
    const detailed = await ask(telling, '/v1/shelves/3/books/405');
    assert.deepEqual([detailed.status, JSON.parse(detailed.text)], [404, { code: 5, message: 'no such book' }]);
  });

  it('unless they are too large', async () => {
    await using proxy = await start({ max_response_body_size: 1000 });
    assert.equal((await ask(proxy, '/v1/shelves/5/books', { title: 'x' })).status, 200);
    const { status, text } = await ask(proxy, '/v1/shelves/5/books', { title: 'x'.repeat(2000) });
    assert.deepEqual([status, text], [502, 'the answer of the service cannot be read: a message is too large']);
  });
});

describe('what is not transcoded', () => {
  it('are calls of gRPC, and routes without services', async () => {
    await using proxy = await start({}, [
      routeTo('/v1/', { grpc_json_transcoder: typed(TYPE, { proto_descriptor: BOOKSHOP }) }),
      routeTo('/'),
    ]);
    const client = new Client(`127.0.0.1:${proxy.listeners.get('main')!.port}`, credentials.createInsecure());
    const { requestSerialize, responseDeserialize, path } = SHOP.GetBook;
    const answer = await new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, { book: 1 }, (error, book) =>
        error === null ? resolve(book) : reject(error),
      );
    });
    client.close();
    assert.deepEqual(answer, { id: 1, title: 'book 1 of 0', genre: 1 });
    assert.equal((await ask(proxy, '/v1/shelves/3/books/7')).status, 415);
  });
});

describe('a configuration', () => {
  const [whole] = [readFileSync(BOOKSHOP)];
  const cases: readonly [what: string, fields: JsonObject, at: string, message: RegExp][] = [
    ['without definitions', { proto_descriptor: '' }, '', /needs proto_descriptor or proto_descriptor_bin/],
    [
      'with a file that is not there',
      { proto_descriptor: '/nowhere.pb' },
      '.proto_descriptor',
      /cannot be read: ENOENT/,
    ],
    ['with a file that is none', { proto_descriptor: import.meta.filename }, '.proto_descriptor', /FileDescriptorSet/],
    [
      'with a service that is not there',
      { services: ['bookshop.Shops'] },
      '.services[0]',
      /"bookshop.Shops" is not in/,
    ],
    [
      'that wants what this build lacks',
      { capture_unknown_query_parameters: true },
      '.capture_unknown_query_parameters',
      /this build|not/,
    ],
    [
      'with definitions that are cut',
      { proto_descriptor: '', proto_descriptor_bin: whole.subarray(0, 5000).toString('base64') },
      '.proto_descriptor_bin',
      /no whole FileDescriptorSet/,
    ],
  ];
  for (const [what, fields, at, message] of cases) {
    it(`${what} is refused`, async () => {
      await assert.rejects(start(fields), (error) => {
        assert.ok(error instanceof ConfigError);
        const fault = error.faults.find(({ severity }) => severity === 'error')!;
        assert.ok(fault.path.endsWith(`http_filters[0].typed_config${at}`), fault.path);
        assert.match(fault.message, message);
        return true;
      });
    });
  }

  it('may hold the definitions themselves', async () => {
    await using proxy = await start({ proto_descriptor: '', proto_descriptor_bin: whole.toString('base64') });
    assert.equal((await ask(proxy, '/v1/shelves/3/books/7')).status, 200);
  });
});
