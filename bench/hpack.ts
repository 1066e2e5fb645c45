// ns per HPACK block: decoded to a head with its table, and written from one, with both builds; beside it what the bytes
// of the same head cost as HTTP/1.
// node:http2 shows its coder to nobody.
// node bench/hpack.ts

import { compileHttp1, Http1Codec } from '../src/wasm/http1.ts';
import { EncodeFlag, type Http2Build, Http2Heads } from '../src/wasm/http2.ts';
import { compileModule } from '../src/wasm/instantiate.ts';
import { type Choice, type Field, ReferenceEncoder } from '../test/support/reference/hpack.ts';

const ROUNDS = 60;
const CALLS = 20_000;
const LIMITS = { maxHeadBytes: 61440, maxFields: 100 };

const START: readonly Field[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':authority', 'shop.example.com'],
  [':path', '/api/v1/items?id=42&sort=name'],
];
const BROWSER: readonly Field[] = [
  ...START,
  ['user-agent', 'Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0'],
  ['accept', 'text/html,application/xhtml+xml,application/json;q=0.9'],
  ['accept-encoding', 'gzip, deflate, br'],
  ['accept-language', 'en-GB,en;q=0.5'],
  ['sec-fetch-dest', 'document'],
  ['sec-fetch-mode', 'navigate'],
  ['sec-fetch-site', 'same-origin'],
  ['upgrade-insecure-requests', '1'],
  ['referer', 'https://shop.example.com/catalogue/page/7'],
  ['cookie', `session=${'0123456789abcdef'.repeat(4)}; theme=dark; consent=yes`],
];

function nsPerCall(run: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = process.hrtime.bigint();
    for (let call = 0; call < CALLS; call += 1) run();
    best = Math.min(best, Number(process.hrtime.bigint() - start) / CALLS);
  }
  return Math.round(best);
}

const blockOf = (encoder: ReferenceEncoder, fields: readonly Field[], choice: Choice): Buffer =>
  Buffer.from(fields.flatMap((field) => encoder.field(field, choice)));
const PLAIN: Choice = { form: 'plain', huffman: false, namesIndex: true };
const HUFFMAN: Choice = { form: 'plain', huffman: true, namesIndex: true };
const INDEXED: Choice = { form: 'indexed', huffman: true, namesIndex: true };

function benchBuild(name: Http2Build, fields: readonly Field[]): Record<string, number> {
  const codec = new Http1Codec(compileHttp1());
  const heads = new Http2Heads({ name, module: compileModule(name) }, codec);
  const decode = (choice: Choice): number => {
    const twin = new ReferenceEncoder();
    const decoder = heads.createDecoder(4096);
    let block = blockOf(twin, fields, choice);
    if (heads.decodeRequest(decoder, block, 0, block.length, LIMITS, 1) < 0) throw new Error('the block has a fault');
    if (choice.form === 'indexed') block = blockOf(twin, fields, choice);
    return nsPerCall(() => void heads.decodeRequest(decoder, block, 0, block.length, LIMITS, 1));
  };
  const text = Buffer.from(
    `GET /api/v1/items?id=42&sort=name HTTP/1.1\r\nhost: shop.example.com\r\n${fields
      .slice(START.length)
      .map(([field, value]) => `${field}: ${value}\r\n`)
      .join('')}\r\n`,
    'latin1',
  );
  const encoder = heads.createEncoder();
  if (codec.parseRequest(text, 0, text.length, LIMITS) < 0) throw new Error('the head has a fault');
  return {
    'decode, indexed': decode(INDEXED),
    'decode, literals': decode(PLAIN),
    'decode, Huffman': decode(HUFFMAN),
    'encode, plain': nsPerCall(() => void heads.encodeRequest(encoder, 0)),
    'encode, Huffman': nsPerCall(() => void heads.encodeRequest(encoder, EncodeFlag.HUFFMAN)),
    'HTTP/1 parse': nsPerCall(() => void codec.parseRequest(text, 0, text.length, LIMITS)),
    'HTTP/1 write': nsPerCall(() => void codec.writeRequest()),
  };
}

for (const fields of [START, BROWSER]) {
  console.log(`request of ${fields.length} fields, ns`);
  console.table({ simd: benchBuild('http2', fields), scalar: benchBuild('http2-scalar', fields) });
}
