import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  ABSENT,
  BROKEN,
  INCOMPLETE,
  type ProxyHeaderResult,
} from '../../../../src/data-plane/listener/listener-filter/proxy-header.ts';
import { parseProxyV1 } from '../../../../src/data-plane/listener/listener-filter/proxy-header-v1.ts';
import { parseProxyV2 } from '../../../../src/data-plane/listener/listener-filter/proxy-header-v2.ts';
import { proxyV2 } from '../../../support/proxy-header.ts';

type Parse = (bytes: Buffer, start: number, end: number) => ProxyHeaderResult;

/** Addresses as `remote:port>local:port`, null for those of the socket. */
function shown(result: ProxyHeaderResult): string | null {
  if (typeof result === 'string') return result;
  const { addresses } = result;
  if (addresses === null) return null;
  return `${addresses.remoteAddress}:${addresses.remotePort}>${addresses.localAddress}:${addresses.localPort}`;
}

/** Whole, behind other bytes and before more, and cut at every byte: a prefix is incomplete, never anything else. */
function assertHeader(parse: Parse, header: Buffer, expected: string | null): void {
  const padded = Buffer.concat([Buffer.from('xx'), header, Buffer.from('\r\nmore')]);
  const whole = parse(padded, 2, padded.length);
  assert.equal(shown(whole), expected, JSON.stringify(header.toString('latin1')));
  assert.equal(typeof whole === 'string' ? 0 : whole.length, header.length);
  for (let end = 0; end < header.length; end += 1) {
    assert.equal(parse(header, 0, end), INCOMPLETE, `${end} of ${JSON.stringify(header.toString('latin1'))}`);
  }
}

/** Broken at the latest when it is complete, and at no length right. */
function assertBroken(parse: Parse, header: Buffer): void {
  assert.equal(parse(header, 0, header.length), BROKEN, JSON.stringify(header.toString('latin1').slice(0, 120)));
  for (let end = 0; end < header.length; end += 1) {
    const result = parse(header, 0, end);
    assert.ok(result === INCOMPLETE || result === BROKEN, `${end}: ${shown(result)}`);
  }
}

describe('a PROXY header of version 1', () => {
  const longest = `TCP6 ${'ffff:'.repeat(7)}ffff ${'ffff:'.repeat(7)}ffff 65535 65535`;
  const good: readonly (readonly [string, string | null])[] = [
    ['TCP4 192.0.2.1 198.51.100.2 56324 443', '192.0.2.1:56324>198.51.100.2:443'],
    ['TCP4 255.255.255.255 0.0.0.0 0 65535', '255.255.255.255:0>0.0.0.0:65535'],
    ['TCP6 2001:DB8:0::1 ::1 1 2', '2001:db8::1:1>::1:2'],
    ['TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.2 1 2', '192.0.2.1:1>198.51.100.2:2'],
    [longest, `${'ffff:'.repeat(7)}ffff:65535>${'ffff:'.repeat(7)}ffff:65535`],
    ['UNKNOWN', null],
    ['UNKNOWN ffff:f...f:ffff whatever 1 2 3', null],
  ];

  it('names both ends, or says that they are unknown', () => {
    for (const [line, expected] of good) assertHeader(parseProxyV1, Buffer.from(`PROXY ${line}\r\n`), expected);
  });

  it('that could be read otherwise is broken', () => {
    const bad = [
      'TCP4 192.0.2.1 198.51.100.2 56324',
      'TCP4 192.0.2.1 198.51.100.2 56324 443 ',
      'TCP4 192.0.2.1 198.51.100.2 56324 443 1',
      'TCP4  192.0.2.1 198.51.100.2 56324 443',
      ' TCP4 192.0.2.1 198.51.100.2 56324 443',
      'TCP4\t192.0.2.1 198.51.100.2 56324 443',
      'TCP4 192.0.2.01 198.51.100.2 56324 443',
      'TCP4 192.0.2 198.51.100.2 56324 443',
      'TCP4 192.0.2.256 198.51.100.2 56324 443',
      'TCP4 ::1 ::1 1 2',
      'TCP4 ::ffff:192.0.2.1 ::ffff:192.0.2.2 1 2',
      'TCP6 192.0.2.1 198.51.100.2 1 2',
      'TCP6 ::1 fe80::1%eth0 1 2',
      'TCP6 ::1 ::g 1 2',
      'TCP4 192.0.2.1 198.51.100.2 65536 443',
      'TCP4 192.0.2.1 198.51.100.2 056 443',
      'TCP4 192.0.2.1 198.51.100.2 +56 443',
      'TCP4 192.0.2.1 198.51.100.2 -1 443',
      'TCP4 192.0.2.1 198.51.100.2 0x10 443',
      'TCP4 192.0.2.1 198.51.100.2 1e3 443',
      'TCP4 192.0.2.1 198.51.100.2  443',
      'TCP5 192.0.2.1 198.51.100.2 1 2',
      'tcp4 192.0.2.1 198.51.100.2 1 2',
      'UDP4 192.0.2.1 198.51.100.2 1 2',
      'UNKNOWNX',
      'unknown',
      'UNKNOWN a\rb',
      '',
      'TCP4',
    ];
    for (const line of bad) assertBroken(parseProxyV1, Buffer.from(`PROXY ${line}\r\n`));
    assertBroken(parseProxyV1, Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\n'));
    assertBroken(parseProxyV1, Buffer.from('PROXY UNKNOWN\n\r\n'));
  });

  it('ends within 107 bytes', () => {
    const line = (length: number): Buffer => Buffer.from(`PROXY UNKNOWN ${'x'.repeat(length - 16)}\r\n`);
    assertHeader(parseProxyV1, line(107), null);
    assertBroken(parseProxyV1, line(108));
    assert.equal(parseProxyV1(Buffer.alloc(107, 'PROXY '), 0, 107), BROKEN);
  });

  it('is told from other bytes at the first that differs', () => {
    for (const text of ['GET / HTTP/1.1\r\n', 'PUT ', 'PROXX', 'proxy TCP4', '\r\n\r\n', 'PROXY\t']) {
      assert.equal(parseProxyV1(Buffer.from(text), 0, text.length), ABSENT, text);
    }
  });
});

describe('a PROXY header of version 2', () => {
  const ipv4 = Buffer.from([192, 0, 2, 1, 198, 51, 100, 2, 0xdc, 0x04, 0x01, 0xbb]);
  const ipv6 = Buffer.from(`20010db8000000000000000000000001${'0'.repeat(31)}100010002`, 'hex');
  const mapped = Buffer.from(`${'0'.repeat(20)}ffffc0000201${'0'.repeat(20)}ffffc633640200010002`, 'hex');
  const tlv = Buffer.from([0x02, 0x00, 0x03, 0x61, 0x62, 0x63]);
  const unix = Buffer.alloc(216, '/run/socket');

  it('names both ends, or leaves them to the socket', () => {
    const good: readonly (readonly [Buffer, string | null])[] = [
      [proxyV2(0x21, 0x11, ipv4), '192.0.2.1:56324>198.51.100.2:443'],
      [proxyV2(0x21, 0x11, Buffer.concat([ipv4, tlv])), '192.0.2.1:56324>198.51.100.2:443'],
      [proxyV2(0x21, 0x11, Buffer.concat([ipv4, Buffer.alloc(3000, 'T')])), '192.0.2.1:56324>198.51.100.2:443'],
      [proxyV2(0x21, 0x21, ipv6), '2001:db8::1:1>::1:2'],
      [proxyV2(0x21, 0x21, mapped), '192.0.2.1:1>198.51.100.2:2'],
      [proxyV2(0x20, 0x11, ipv4), null],
      [proxyV2(0x20, 0xff, Buffer.from('whatever')), null],
      [proxyV2(0x20, 0x00, Buffer.alloc(0)), null],
      [proxyV2(0x21, 0x00, Buffer.alloc(0)), null],
      [proxyV2(0x21, 0x00, tlv), null],
      [proxyV2(0x21, 0x31, unix), null],
      [proxyV2(0x21, 0x12, ipv4), null],
    ];
    for (const [header, expected] of good) assertHeader(parseProxyV2, header, expected);
  });

  it('that could be read otherwise is broken', () => {
    const bad = [
      proxyV2(0x11, 0x11, ipv4),
      proxyV2(0x31, 0x11, ipv4),
      proxyV2(0x22, 0x11, ipv4),
      proxyV2(0x2f, 0x11, ipv4),
      proxyV2(0x21, 0x41, ipv4),
      proxyV2(0x21, 0x13, ipv4),
      proxyV2(0x21, 0x10, ipv4),
      proxyV2(0x21, 0x01, ipv4),
      proxyV2(0x21, 0x11, ipv4.subarray(0, 11)),
      proxyV2(0x21, 0x21, ipv4),
      proxyV2(0x21, 0x31, unix.subarray(1)),
    ];
    for (const header of bad) assertBroken(parseProxyV2, header);
  });

  it('is told from other bytes at the first that differs', () => {
    for (const text of ['GET / HTTP/1.1\r\n', '\r\n\r\n\0\r\nQUIX', '\r\n\r\nG']) {
      assert.equal(parseProxyV2(Buffer.from(text, 'latin1'), 0, text.length), ABSENT, text);
    }
  });

  it('may be as long as its length can say', () => {
    const header = proxyV2(0x21, 0x11, Buffer.concat([ipv4, Buffer.alloc(65_535 - ipv4.length)]));
    assert.equal(parseProxyV2(header, 0, header.length - 1), INCOMPLETE);
    assert.equal(shown(parseProxyV2(header, 0, header.length)), '192.0.2.1:56324>198.51.100.2:443');
  });
});

describe('a PROXY header of either version', () => {
  const seeds: readonly (readonly [Parse, Buffer])[] = [
    [parseProxyV1, Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n')],
    [parseProxyV1, Buffer.from('PROXY TCP6 2001:db8::1 ::1 1 2\r\n')],
    [parseProxyV2, proxyV2(0x21, 0x11, Buffer.alloc(15, 1))],
    [parseProxyV2, proxyV2(0x21, 0x21, Buffer.alloc(40, 2))],
  ];

  it('with any byte changed is read alike whole and in pieces, and names nothing but addresses', () => {
    const change = fc.record({ at: fc.nat({ max: 80 }), byte: fc.nat({ max: 255 }) });
    fc.assert(
      fc.property(fc.constantFrom(...seeds), fc.array(change, { maxLength: 3 }), ([parse, seed], changes) => {
        const bytes = Buffer.from(seed);
        for (const { at, byte } of changes) bytes[at % bytes.length] = byte;
        const whole = parse(bytes, 0, bytes.length);
        if (typeof whole !== 'string' && whole.addresses !== null) {
          const { remoteAddress, localAddress, remotePort, localPort } = whole.addresses;
          assert.ok(isIP(remoteAddress) && isIP(localAddress), `${remoteAddress} ${localAddress}`);
          assert.ok(remotePort <= 65_535 && localPort <= 65_535);
        }
        const decided = [...bytes.keys()].map((end) => parse(bytes, 0, end)).find((result) => result !== INCOMPLETE);
        // Whoever reads byte by byte must come to the same end, and not before the header is complete.
        assert.deepEqual(decided ?? whole, whole);
        if (decided !== undefined && typeof decided !== 'string') assert.ok(decided.length <= bytes.length);
      }),
      { numRuns: 2000 },
    );
  });
});
