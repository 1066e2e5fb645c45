// What the filters of compression do with streams of zlib when their own stream is over.

import assert from 'node:assert/strict';
import type { Transform } from 'node:stream';
import { test } from 'node:test';
import zlib from 'node:zlib';
import { TextHead } from '../../../../src/data-plane/http/text-head.ts';
import type { FilterCallbacks, FilterContext, HttpFilterKind } from '../../../../src/data-plane/index.ts';
import { COMPRESSOR_FILTER } from '../../../../src/extensions/filters.http/compressor/filter.ts';
import { DECOMPRESSOR_FILTER } from '../../../../src/extensions/filters.http/decompressor/filter.ts';
import type { RequestHead } from '../../../../src/wasm/http1.ts';

const ON = { key: '', default: true };
const CONTEXT = {
  counter: () => ({ add: () => {} }),
  runtime: { derived: (derive: (values: object) => unknown) => ({ value: derive({ flag: () => undefined }) }) },
  headerNames: { compressionStatus: 'x-status' },
} as unknown as FilterContext;
const GZIP = { kind: 'gzip', level: -1, strategy: 0, memoryLevel: 5, windowBits: 12, chunkBytes: 4096 };
const COMPRESSOR = {
  library: GZIP,
  isChosenFirst: false,
  request: { enabled: ON, minLength: 30, contentTypes: ['text/plain'], counters: {} },
  response: { enabled: ON, minLength: 30, contentTypes: ['text/plain'], counters: {}, exemptStatuses: [] },
  olderUsedCounter: '',
};
const DIRECTION = { enabled: ON, ignoresNoTransform: false, counters: {} };
const DECOMPRESSOR = {
  library: { ...GZIP, limit: { ratio: 100, freeBytes: 0 } },
  advertises: true,
  request: DIRECTION,
  response: DIRECTION,
  failures: { byCode: {}, others: 'a', bombs: 'b' },
};

for (const { name, kind, settings, factory, fields } of [
  { name: 'compressor', kind: COMPRESSOR_FILTER, settings: COMPRESSOR, factory: 'createGzip', fields: '' },
  {
    name: 'decompressor',
    kind: DECOMPRESSOR_FILTER,
    settings: DECOMPRESSOR,
    factory: 'createGunzip',
    fields: 'content-encoding: gzip\r\n',
  },
] as const) {
  test(`the ${name} gives its streams of zlib back with its stream`, (t) => {
    const made: Transform[] = [];
    const create = zlib[factory] as (options: object) => Transform;
    t.mock.method(zlib, factory, (options: object) => {
      made.push(create(options));
      return made.at(-1);
    });
    const shared = new Map<string, object>();
    const callbacks = {
      routeSettings: [],
      isLocalReply: false,
      awaitsTunnel: false,
      shared: (key: string, make: () => object) => shared.get(key) ?? shared.set(key, make()).get(key),
    } as unknown as FilterCallbacks;
    const counting = (kind as HttpFilterKind).compile(withCounters(settings), CONTEXT)(callbacks);
    const lines = `content-type: text/plain\r\ncontent-length: 1000\r\naccept-encoding: gzip\r\n${fields}`;
    assert.equal(counting.decodeHeaders!(new TextHead('', lines) as unknown as RequestHead, false), 'stop-and-pause');
    assert.equal(counting.encodeHeaders!(new TextHead('', lines), 200, false), 'stop-and-pause');
    for (const see of ['decodeData', 'encodeData'] as const) {
      const data = { bytes: zlib.gzipSync('hello'), isEnd: false, addTrailers: () => assert.fail('adds no trailers') };
      assert.equal(counting[see]!(data), 'stop-and-pause');
    }
    assert.equal(made.length, 2);
    counting.onDestroy!();
    assert.deepEqual(
      made.map(({ destroyed }) => destroyed),
      [true, true],
    );
  });
}

/** Settings whose counters have some name each. */
function withCounters(settings: { readonly request: object; readonly response: object }): object {
  const names = [
    ...['compressed', 'not_compressed', 'total_uncompressed_bytes', 'total_compressed_bytes', 'header_compressor_used'],
    ...['decompressed', 'not_decompressed', 'content_length_too_small'],
  ];
  const counters = Object.fromEntries(names.map((name) => [name, name]));
  return { ...settings, request: { ...settings.request, counters }, response: { ...settings.response, counters } };
}
