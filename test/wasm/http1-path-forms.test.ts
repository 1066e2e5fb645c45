// Paths and hosts of requests in their normal form, as everybody behind reads them and as the next hop gets them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compileHttp1, Http1Codec, PathChange, PathStep, type RequestHead } from '../../src/wasm/http1.ts';

const LIMITS = { maxHeadBytes: 61440, maxFields: 100 };
const { normalize, mergeSlashes, unescapeSlashes } = PathStep;
const codec = new Http1Codec(compileHttp1());

function parse(line: string, host = 'h'): RequestHead {
  const bytes = Buffer.from(`${line} HTTP/1.1\r\nhost: ${host}\r\nx-last: 1\r\n\r\n`, 'latin1');
  assert.equal(codec.parseRequest(bytes, 0, bytes.length, LIMITS), bytes.length, line);
  return codec.request;
}

function written(): string {
  const length = codec.writeRequest();
  assert.ok(length > 0, `${length}`);
  return codec.requestText(length);
}

/** The path as it is read and as it is written, which must be the same. */
function rewrite(path: string, steps: number): { readonly change: PathChange; readonly path: string } {
  const head = parse(`GET ${path}`);
  const change = head.rewritePath(steps);
  if (change === PathChange.invalid) return { change, path: '' };
  const result = { change, path: head.path() };
  assert.equal(head.target(), result.path);
  assert.equal(written(), `GET ${result.path} HTTP/1.1\r\nhost: h\r\nx-last: 1\r\n\r\n`);
  return result;
}

describe('a path is normalized', () => {
  const cases: readonly [path: string, normal: string][] = [
    ['/', '/'],
    ['/a/b', '/a/b'],
    ['/a/', '/a/'],
    ['/.', '/'],
    ['/./', '/'],
    ['/..', '/'],
    ['/../', '/'],
    ['/../..', '/'],
    ['/../a', '/a'],
    ['/a/.', '/a/'],
    ['/a/./b', '/a/b'],
    ['/a/..', '/'],
    ['/a/../', '/'],
    ['/a/../b', '/b'],
    ['/a/b/../../c', '/c'],
    ['/a/b/../..', '/'],
    ['/a/../../../c', '/c'],
    ['/a//../b', '/a/b'],
    ['//..', '/'],
    ['//a', '//a'],
    ['/a/...', '/a/...'],
    ['/a/.../..', '/a/'],
    ['/.a/..b/c.', '/.a/..b/c.'],
    ['/%2e%2E/a', '/a'],
    ['/a/%2e', '/a/'],
    ['/a/.%2e/b', '/b'],
    ['/%61%7a%41%5A%30%39%2d%2E%5f%7E', '/azAZ09-._~'],
    ['/a%2Fb%5c', '/a%2Fb%5c'],
    ['/..%2fa', '/..%2fa'],
    ['/a%20%3F%23%25', '/a%20%3F%23%25'],
    ['/%252e%252e/a', '/%252e%252e/a'],
    ['/%', '/%'],
    ['/%2', '/%2'],
    ['/%zz%4', '/%zz%4'],
    ['/%%32%65', '/%%32e'],
    ['/%2%65/%65', '/%2%65/e'],
    ['/%x/../%61', '/a'],
    ['/\\a', '//a'],
    ['/a\\..\\b', '/b'],
    ['/a/../b?c/../%61//\\', '/b?c/../%61//\\'],
    ['/a?/..', '/a?/..'],
    ['/a/..?', '/?'],
  ];
  for (const [path, normal] of cases) {
    test(`${path} to ${normal}`, () => {
      assert.equal(rewrite(path, normalize).path, normal);
    });
  }

  test('but not one with an escaped NUL', () => {
    assert.equal(rewrite('/a%00b', normalize).change, PathChange.invalid);
    assert.equal(rewrite('/%00/..', normalize).change, PathChange.invalid);
    assert.equal(rewrite('/a?%00', normalize).path, '/a?%00');
    assert.equal(rewrite('/a%00b', mergeSlashes | unescapeSlashes).path, '/a%00b');
  });

  // By text and segments, as RFC 3986 section 5.2.4 has it.
  const piece = fc.constantFrom(
    '/',
    '/',
    '.',
    '..',
    'a',
    'b',
    '%2e',
    '%2E',
    '%61',
    '%2f',
    '%5C',
    '%25',
    '%',
    '2',
    'e',
    '\\',
    '//',
  );
  const anyPath = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`);

  function byTheBook(path: string): string {
    const plain = path
      .replaceAll('\\', '/')
      .split('/')
      .map((segment) => decoded(segment));
    const output: string[] = [];
    const segments = plain.slice(1);
    for (const [index, segment] of segments.entries()) {
      const isLast = index === segments.length - 1;
      if (segment === '..') output.pop();
      if (segment !== '.' && segment !== '..') output.push(segment);
      else if (isLast) output.push('');
    }
    return `/${output.join('/')}`;
  }

  /** Escapes go one after the other; one that would come to stand within two characters of a bare percent sign stays. */
  function decoded(segment: string): string {
    let text = '';
    let rest = segment;
    while (rest !== '') {
      const triplet = /^%[\da-f]{2}/i.exec(rest)?.[0];
      const char = triplet === undefined ? rest[0]! : String.fromCharCode(Number.parseInt(triplet.slice(1), 16));
      const isPlain = triplet !== undefined && /[\w.~-]/.test(char) && !/%.?$/.test(bare(text));
      text += triplet === undefined || isPlain ? char : triplet;
      rest = rest.slice(triplet?.length ?? 1);
    }
    return text;
  }

  /** With what is an escape made unlike a percent sign. */
  function bare(text: string): string {
    return text.replace(/%[\da-f]{2}/gi, '+++');
  }

  test('as segment by segment', () => {
    fc.assert(
      fc.property(anyPath, (path) => {
        assert.equal(rewrite(path, normalize).path, byTheBook(path));
      }),
      { numRuns: 3000 },
    );
  });

  test('once and for all', () => {
    const steps = fc.constantFrom(normalize, mergeSlashes, normalize | mergeSlashes);
    fc.assert(
      fc.property(anyPath, steps, (path, set) => {
        const once = rewrite(path, set).path;
        assert.equal(rewrite(once, set).path, once);
        assert.ok(once.length <= path.length && once.startsWith('/'));
      }),
      { numRuns: 3000 },
    );
  });

  test('to something without dots between slashes', () => {
    fc.assert(
      fc.property(anyPath, (path) => {
        fc.pre(!/%(?![\da-f]{2})/i.test(path));
        const all = rewrite(path, normalize | mergeSlashes | unescapeSlashes).path;
        assert.doesNotMatch(all, /\/\.{1,2}(\/|$)|\/\/|\\|%2f|%5c|%2e/i);
      }),
      { numRuns: 3000 },
    );
  });
});

describe('slashes of a path', () => {
  const cases: readonly [path: string, steps: number, result: string, change: PathChange][] = [
    ['//a///b//', mergeSlashes, '/a/b/', PathChange.rewritten],
    ['//', mergeSlashes, '/', PathChange.rewritten],
    ['/a/b?c//d', mergeSlashes, '/a/b?c//d', PathChange.none],
    ['/a//b?c//d', mergeSlashes, '/a/b?c//d', PathChange.rewritten],
    ['/a%2fb%2F', unescapeSlashes, '/a/b/', PathChange.unescaped],
    ['/a%5cb%5C', unescapeSlashes, '/a\\b\\', PathChange.unescaped],
    ['/a%2f%2fb', unescapeSlashes | mergeSlashes, '/a/b', PathChange.unescaped],
    ['/a%2f..%5Cb', unescapeSlashes | normalize, '/b', PathChange.unescaped],
    ['/a%252fb', unescapeSlashes, '/a%252fb', PathChange.rewritten],
    ['/a?b%2fc', unescapeSlashes, '/a?b%2fc', PathChange.none],
  ];
  for (const [path, steps, result, change] of cases) {
    test(`${path} with ${steps}: ${result}`, () => assert.deepEqual(rewrite(path, steps), { path: result, change }));
  }
});

describe('what is no path', () => {
  const cases: readonly [line: string, path: string, written: string][] = [
    ['OPTIONS *', '*', 'OPTIONS * '],
    ['CONNECT a:80', '', 'CONNECT a:80 '],
    ['GET http://a?b//c', '/?b//c', 'GET /?b//c '],
    ['GET http://a', '/', 'GET / '],
  ];
  for (const [line, path, start] of cases) {
    test(`stays: ${line}`, () => {
      const head = parse(line, 'a:80');
      assert.equal(head.rewritePath(normalize | mergeSlashes | unescapeSlashes), PathChange.none);
      assert.equal(head.path(), path);
      assert.ok(written().startsWith(start));
    });
  }

  test('a path behind an authority is one', () => {
    const head = parse('GET http://a/b/../c?d');
    head.rewritePath(normalize);
    assert.deepEqual([head.path(), head.authority()], ['/c?d', 'a']);
    assert.match(written(), /^GET \/c\?d HTTP\/1.1\r\nhost: a\r\n/);
  });
});

describe('of a host', () => {
  const cases: readonly [host: string, port: number, stripped: string, undotted: string][] = [
    ['a', -1, 'a', 'a'],
    ['a:80', 80, 'a', 'a:80'],
    ['a.b.:8080', 8080, 'a.b.', 'a.b:8080'],
    ['a.', -1, 'a.', 'a'],
    ['[::1]:443', 443, '[::1]', '[::1]:443'],
    ['[::1]', -1, '[::1]', '[::1]'],
    ['.', -1, '.', '.'],
  ];
  for (const [host, port, stripped, undotted] of cases) {
    test(`${host}: the port`, () => {
      const head = parse('GET /', host);
      assert.equal(head.authorityPort, port);
      head.stripPort();
      assert.deepEqual([head.authority(), head.headerByName('host')], [stripped, stripped]);
      assert.equal(written(), `GET / HTTP/1.1\r\nhost: ${stripped}\r\nx-last: 1\r\n\r\n`);
    });

    test(`${host}: the dot`, () => {
      const head = parse('GET /', host);
      head.stripHostDot();
      assert.deepEqual([head.authority(), head.headerByName('host')], [undotted, undotted]);
      assert.equal(written(), `GET / HTTP/1.1\r\nhost: ${undotted}\r\nx-last: 1\r\n\r\n`);
    });
  }

  test('both go, one after the other', () => {
    const head = parse('GET /', 'a.:80');
    head.stripHostDot();
    head.stripPort();
    assert.equal(head.authority(), 'a');
    assert.match(written(), /host: a\r\n/);
  });

  test('that of the target is what counts', () => {
    const head = parse('GET http://a.:80/b', 'c.:1');
    head.stripHostDot();
    head.stripPort();
    assert.deepEqual([head.authority(), head.headerByName('host')], ['a', 'c.:1']);
    assert.equal(written(), 'GET /b HTTP/1.1\r\nhost: a\r\nx-last: 1\r\n\r\n');
  });

  test('a CONNECT says it twice', () => {
    const head = parse('CONNECT a.:80', 'a.:80');
    head.stripHostDot();
    assert.equal(head.authority(), 'a:80');
    assert.equal(written(), 'CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\nx-last: 1\r\n\r\n');
  });

  test('one that is too long for an edit is not written', () => {
    const head = parse('GET /', `${'a'.repeat(5000)}:80`);
    head.stripPort();
    assert.ok(codec.writeRequest() < 0);
  });
});
