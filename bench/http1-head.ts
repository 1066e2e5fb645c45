// ns per HTTP/1 head, for both WASM builds and the plain TypeScript reference.
// node bench/http1-head.ts

import { Http1Codec, PreparedLines } from '../src/wasm/http1.ts';
import { compileModule } from '../src/wasm/instantiate.ts';
import * as reference from '../test/support/reference/http1.ts';

// Many short rounds: on a shared machine some of them run undisturbed.
const ROUNDS = 60;
const LIMITS = { maxHeadBytes: 61440, maxFields: 100 };

function head(...lines: string[]): Buffer {
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

const SMALL = head(
  'GET /api/v1/items?id=42&sort=name HTTP/1.1',
  'Host: shop.example.com',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0',
  'Accept: text/html,application/xhtml+xml,application/json;q=0.9',
  'Accept-Encoding: gzip, deflate, br',
  'Accept-Language: en-GB,en;q=0.5',
  'Connection: keep-alive',
);
const LARGE = head(
  ...SMALL.toString('latin1').trimEnd().split('\r\n'),
  ...Array.from({ length: 8 }, (_, index) => `X-Application-Header-${index}: ${'value '.repeat(5)}${index}`),
  `Cookie: session=${'0123456789abcdef'.repeat(4)}; theme=dark; consent=yes`,
  'Referer: https://shop.example.com/catalogue/page/7',
);

/** Best of some rounds, so that the rounds before the optimizing compiler do not count. */
function nsPerCall(calls: number, run: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = process.hrtime.bigint();
    for (let call = 0; call < calls; call += 1) run();
    best = Math.min(best, Number(process.hrtime.bigint() - start) / calls);
  }
  return Math.round(best);
}

function benchBuild(name: 'http1' | 'http1-scalar', bytes: Buffer): Record<string, number> {
  const codec = new Http1Codec({ name, module: compileModule(name) });
  const constant = new PreparedLines(['x-forwarded-proto: http', 'x-proxy-expected-rq-timeout-ms: 15000']);
  bytes.copy(codec.readBuffer);
  const parse = (): number => codec.parseRequest(bytes, 0, bytes.length, LIMITS);
  return {
    'copy in, parse': nsPerCall(30_000, parse),
    '+ rewrite': nsPerCall(30_000, () => {
      parse();
      codec.request.appendPrepared(constant);
      codec.writeRequest();
    }),
    '+ 2 lines of its own': nsPerCall(30_000, () => {
      parse();
      codec.request.appendPrepared(constant);
      codec.request.appendLine('x-forwarded-for: 192.0.2.17');
      codec.request.append('x-request-id', '0f9d2c4e-3f5b-4f1e-9a55-7f0c6c1d2e3f');
      codec.writeRequest();
    }),
    '+ path, authority, text': nsPerCall(30_000, () => {
      parse();
      codec.request.path();
      codec.request.authority();
      codec.request.appendPrepared(constant);
      codec.request.appendLine('x-forwarded-for: 192.0.2.17');
      codec.request.append('x-request-id', '0f9d2c4e-3f5b-4f1e-9a55-7f0c6c1d2e3f');
      codec.requestText(codec.writeRequest());
    }),
  };
}

for (const bytes of [SMALL, LARGE]) {
  console.log(`request head of ${bytes.length} bytes, ns per head`);
  console.table({
    simd: benchBuild('http1', bytes),
    scalar: benchBuild('http1-scalar', bytes),
    reference: { 'copy in, parse': nsPerCall(300, () => void reference.parseRequest(bytes, LIMITS)) },
  });
}
