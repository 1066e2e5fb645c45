// The examples of RFC 7541, appendix C: whole connections of three blocks, plain and with the Huffman code, and a table
// of 256 octets that has to let entries go.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileHttp1, Http1Codec, Method } from '../../../src/wasm/http1.ts';
import { Http2Heads } from '../../../src/wasm/http2.ts';
import { compileModule } from '../../../src/wasm/instantiate.ts';

const LIMITS = { maxHeadBytes: 61440, maxFields: 100 };
const http1 = compileHttp1();

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

const REQUESTS = [
  ['GET / http www.example.com'],
  ['GET / http www.example.com', 'cache-control: no-cache'],
  ['GET /index.html https www.example.com', 'custom-key: custom-value'],
];
const RESPONSES = [
  ['302', 'cache-control: private', 'date: Mon, 21 Oct 2013 20:13:21 GMT', 'location: https://www.example.com'],
  ['307', 'cache-control: private', 'date: Mon, 21 Oct 2013 20:13:21 GMT', 'location: https://www.example.com'],
  [
    '200',
    'cache-control: private',
    'date: Mon, 21 Oct 2013 20:13:22 GMT',
    'location: https://www.example.com',
    'content-encoding: gzip',
    'set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
  ],
];

/** A size update to 256 octets, which the examples have happened before. */
const TABLE_OF_256 = '3fe101';

for (const name of ['http2', 'http2-scalar'] as const) {
  describe(`appendix C of RFC 7541, ${name}`, () => {
    const codec = new Http1Codec(http1);
    const heads = new Http2Heads({ name, module: compileModule(name) }, codec);

    const cases: [string, string[]][] = [
      [
        'C.3 requests without the Huffman code',
        [
          '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
          '8286 84be 5808 6e6f 2d63 6163 6865',
          '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
        ],
      ],
      [
        'C.4 requests with it',
        [
          '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
          '8286 84be 5886 a8eb 1064 9cbf',
          '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
        ],
      ],
    ];
    for (const [title, blocks] of cases) {
      it(title, () => {
        const decoder = heads.createDecoder(4096);
        const heard = blocks.map((block) => {
          const bytes = hex(block);
          assert.ok(heads.decodeRequest(decoder, bytes, 0, bytes.length, LIMITS, 1) > 0);
          const { request } = codec;
          const scheme = (request.flags & 1024) === 0 ? 'http' : 'https';
          const rest = request.entries().slice(1);
          return [
            `${request.method} ${request.path()} ${scheme} ${request.authority()}`,
            ...rest.map(([field, value]) => `${field}: ${value}`),
          ];
        });
        assert.deepEqual(heard, REQUESTS);
        heads.release(decoder);
      });
    }

    const answers: [string, string[]][] = [
      [
        'C.5 responses without the Huffman code',
        [
          '4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120' +
            '474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
          '4803 3330 37c1 c0bf',
          '88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738' +
            '666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765' +
            '3d33 3630 303b 2076 6572 7369 6f6e 3d31',
        ],
      ],
      [
        'C.6 responses with it',
        [
          '4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718' +
            '63c7 8f0b 97c8 e9ae 82ae 43d3',
          '4883 640e ffc1 c0bf',
          '88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7' +
            'b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07',
        ],
      ],
    ];
    for (const [title, blocks] of answers) {
      it(`${title}, in 256 octets`, () => {
        const decoder = heads.createDecoder(4096);
        const heard = blocks.map((block, number) => {
          const bytes = hex(number === 0 ? TABLE_OF_256 + block : block);
          assert.ok(heads.decodeResponse(decoder, bytes, 0, bytes.length, LIMITS, 1, Method.GET) > 0);
          const { response } = codec;
          return [String(response.status), ...response.entries().map(([field, value]) => `${field}: ${value}`)];
        });
        assert.deepEqual(heard, RESPONSES);
        // What the examples show of the table behind the third block: three entries, no fourth.
        const indexes = [0xbe, 0xbf, 0xc0].map((index) => Buffer.from([0x88, index]));
        for (const block of indexes) {
          assert.ok(heads.decodeResponse(decoder, block, 0, 2, LIMITS, 1, Method.GET) > 0);
        }
        const beyond = Buffer.from([0x88, 0xc1]);
        assert.ok(heads.decodeResponse(decoder, beyond, 0, 2, LIMITS, 1, Method.GET) < 0);
        heads.release(decoder);
      });
    }
  });
}
