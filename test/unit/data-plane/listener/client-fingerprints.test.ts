// Fingerprints of clients, held against published answers and against what they are said to depend on.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  ja3Fingerprint,
  ja4Fingerprint,
} from '../../../../src/data-plane/listener/listener-filter/client-fingerprints.ts';
import {
  CLIENT_HELLO,
  type ClientAnnouncement,
  ClientHelloReader,
} from '../../../../src/data-plane/listener/listener-filter/client-hello.ts';
import { clientHello, codes, extension, type HelloParts, lengthed, RFC_8448 } from '../../../support/client-hello.ts';

const NOTHING: ClientAnnouncement = {
  version: 0x0303,
  ciphers: [],
  groups: [],
  signatureAlgorithms: [],
  versions: [],
  pointFormats: [],
  extensions: [],
  asksForStatus: false,
  applicationProtocols: [],
};
const NONE = '000000000000';
/** That of the description of JA4: a browser. */
const BROWSER: ClientAnnouncement = {
  ...NOTHING,
  ciphers: [
    0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d, 0x002f,
    0x0035,
  ],
  extensions: [
    0x001b, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017, 0x002d, 0x000d, 0x0005, 0x0023, 0x0012, 0x002b, 0xff01, 0x000b,
    0x000a, 0x0015,
  ],
  signatureAlgorithms: [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601],
  versions: [0x0304, 0x0303],
  applicationProtocols: ['h2', 'http/1.1'],
};
const GREASE = Array.from({ length: 16 }, (_, digit) => 0x0a0a + 0x1010 * digit);

function announced(hello: Buffer): ClientAnnouncement {
  const reader = new ClientHelloReader(true);
  assert.equal(reader.read(hello, 0, hello.length, 16_384), CLIENT_HELLO);
  return { ...reader.offers, applicationProtocols: reader.applicationProtocols };
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}

function firstPart(fields: Partial<ClientAnnouncement>): string {
  return ja4Fingerprint({ ...NOTHING, ...fields }).split('_')[0]!;
}

describe('JA3', () => {
  it('is what its authors have published', () => {
    const first = { version: 769, ciphers: [47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4] };
    const lists = { extensions: [0, 10, 11], groups: [23, 24, 25], pointFormats: [0] };
    assert.equal(ja3Fingerprint({ ...NOTHING, ...first, ...lists }), 'ada70206e40642a3e4461f35503241d5');
    const second = { version: 769, ciphers: [4, 5, 10, 9, 100, 98, 3, 6, 19, 18, 99] };
    assert.equal(ja3Fingerprint({ ...NOTHING, ...second }), 'de350869b8c85de67a350c8d186f11e6');
  });

  it('is of the hello as it comes', () => {
    assert.equal(ja3Fingerprint(announced(RFC_8448)), 'da4dea34fe6d4ce5f0725df3f2682fa0');
    const parts: HelloParts = {
      version: 0x0301,
      ciphers: [0x0a0a, 0xc02b, 0x002f],
      serverName: 'a.example',
      protocols: ['h2'],
      extensions: [
        extension(0x2a2a, Buffer.alloc(0)),
        extension(10, lengthed(2, codes([0x7a7a, 29, 23]))),
        extension(11, lengthed(1, Buffer.from([0, 2, 1]))),
        extension(0xff01, Buffer.from([0])),
      ],
    };
    const text = '769,49195-47,10-11-65281-0-16,29-23,0-2-1';
    assert.equal(ja3Fingerprint(announced(clientHello(parts))), md5(text));
  });

  it('tells of point formats only where their list is well formed', () => {
    const ofList = (list: Buffer): string =>
      ja3Fingerprint(announced(clientHello({ extensions: [extension(11, list)] })));
    assert.equal(ofList(Buffer.from([2, 0])), md5('771,4883-4883,11,,'));
    assert.equal(ofList(Buffer.from([1, 0])), md5('771,4883-4883,11,,0'));
  });
});

describe('JA4', () => {
  it('is what its authors have published', () => {
    assert.equal(ja4Fingerprint(BROWSER), 't13d1516h2_8daaf6152771_e5627efa2ab1');
  });

  it('is of the hello as it comes', () => {
    assert.equal(ja4Fingerprint(announced(RFC_8448)), 't13d030900_55b375c5d22e_59cd3dafc54d');
  });

  it('begins with version, name, counts and protocol', () => {
    assert.equal(firstPart({}), 't12i000000');
    assert.equal(firstPart({ version: 0x0301 }), 't10i000000');
    assert.equal(firstPart({ version: 0x0302 }), 't11i000000');
    assert.equal(firstPart({ version: 0x0300 }), 'ts3i000000');
    assert.equal(firstPart({ version: 0x0002 }), 'ts2i000000');
    assert.equal(firstPart({ version: 0x7777 }), 't00i000000');
    // In any order, and none of random ones.
    assert.equal(firstPart({ versions: [0x0302, 0xfafa, 0x0304, 0x0303] }), 't13i000000');
    assert.equal(firstPart({ versions: [0x0a0a] }), 't12i000000');
    assert.equal(firstPart({ extensions: [0] }), 't12d000100');
    assert.equal(firstPart({ ciphers: Array(150).fill(1), extensions: Array(100).fill(1) }), 't12i999900');
    assert.equal(firstPart({ applicationProtocols: ['http/1.1', 'h2'] }), 't12i0000h1');
    assert.equal(firstPart({ applicationProtocols: ['x'] }), 't12i0000xx');
    assert.equal(firstPart({ applicationProtocols: ['\xab'] }), 't12i0000ab');
    assert.equal(firstPart({ applicationProtocols: ['0\xab'] }), 't12i00003b');
    assert.equal(firstPart({ applicationProtocols: ['-a'] }), 't12i000021');
  });

  it('has zeros for lists that are not there', () => {
    assert.equal(ja4Fingerprint(NOTHING), `t12i000000_${NONE}_${NONE}`);
    const named = { ...NOTHING, extensions: [0, 16] };
    assert.equal(ja4Fingerprint(named), `t12d000200_${NONE}_${NONE}`);
    // Nothing is written behind the extensions where there are no algorithms.
    const one = { ...NOTHING, extensions: [5] };
    const digest = createHash('sha256').update('0005').digest('hex').slice(0, 12);
    assert.equal(ja4Fingerprint(one), `t12i000100_${NONE}_${digest}`);
  });
});

describe('fingerprints', () => {
  it('do not depend on random values, and JA4 on no order but that of algorithms', () => {
    const shuffled = (values: readonly number[]) =>
      fc.shuffledSubarray([...values], { minLength: values.length, maxLength: values.length });
    const withGrease = (values: readonly number[], grease: number, at: number) => values.toSpliced(at, 0, grease);
    const grease = fc.constantFrom(...GREASE);
    fc.assert(
      fc.property(
        shuffled(BROWSER.ciphers),
        shuffled(BROWSER.extensions),
        grease,
        fc.nat(8),
        (ciphers, extensions, random, at) => {
          const other = {
            ...BROWSER,
            ciphers: withGrease(ciphers, random, at),
            extensions: withGrease(extensions, random, at),
            groups: withGrease(BROWSER.groups, random, at),
            signatureAlgorithms: withGrease(BROWSER.signatureAlgorithms, random, at),
            versions: withGrease(BROWSER.versions, random, at),
          };
          assert.equal(ja4Fingerprint(other), ja4Fingerprint(BROWSER));
          const plain = { ...BROWSER, ciphers, extensions };
          assert.equal(ja3Fingerprint(other), ja3Fingerprint(plain));
        },
      ),
    );
    const reversed = { ...BROWSER, signatureAlgorithms: BROWSER.signatureAlgorithms.toReversed() };
    assert.notEqual(ja4Fingerprint(reversed), ja4Fingerprint(BROWSER));
    // What only looks like a random value is none.
    assert.notEqual(ja3Fingerprint({ ...BROWSER, ciphers: [0x0a1a] }), ja3Fingerprint({ ...BROWSER, ciphers: [] }));
  });
});
