import assert from 'node:assert/strict';
import { BlockList } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { canonicalIp, type IpPrefix, parseIp, parsePrefix, prefixKey } from '../../../src/base/ip-number.ts';
import { PrefixTrie } from '../../../src/base/prefix-trie.ts';

const ipv4 = fc.ipV4();
const ipv6 = fc.ipV6();

describe('an IP address as a number', () => {
  it('has the words of its literal, however that is written', () => {
    const words = (text: string) => parseIp(text)?.words;
    assert.deepEqual(words('255.0.0.1'), [0xff000001]);
    assert.deepEqual(words('1:2::7:8'), [0x10002, 0, 0, 0x70008]);
    assert.deepEqual(words('::'), [0, 0, 0, 0]);
    assert.deepEqual(words('1:2:3:4:5:6:7::'), [0x10002, 0x30004, 0x50006, 0x70000]);
    assert.deepEqual(words('64:ff9b::1.2.3.4'), [0x64ff9b, 0, 0, 0x01020304]);
    assert.deepEqual(words('fe80::1%eth0'), [0xfe800000, 0, 0, 1]);
    assert.equal(words('example.com'), undefined);
    assert.equal(words('1.2.3'), undefined);
  });

  it('is IPv4 when it is written in IPv6', () => {
    assert.deepEqual(parseIp('::ffff:1.2.3.4')?.words, [0x01020304]);
    assert.deepEqual(parseIp('::FFFF:0102:0304')?.words, [0x01020304]);
    assert.deepEqual(prefixKey(parsePrefix('::ffff:10.0.0.0', 104)!), prefixKey(parsePrefix('10.255.0.0', 8)!));
  });

  it('equals another by value only', () => {
    fc.assert(
      fc.property(ipv6, (text) => {
        assert.ok(parseIp(text)!.equals(parseIp(canonicalIp(text))!));
        assert.ok(!parseIp('0.0.0.0')!.equals(parseIp('::')!));
      }),
    );
  });

  it('knows this machine', () => {
    for (const local of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) assert.ok(parseIp(local)!.isLoopback);
    for (const other of ['128.0.0.1', '::2', '1::1', '0.0.0.0']) assert.ok(!parseIp(other)!.isLoopback);
  });

  it('has no prefix longer than itself', () => {
    assert.equal(parsePrefix('1.2.3.4', 33), undefined);
    assert.equal(parsePrefix('::', 129), undefined);
    assert.equal(parsePrefix('::', 128)?.length, 128);
  });
});

describe('blocks of addresses', () => {
  /** Whether the block holds the address, by Node's own reckoning. */
  function holds(range: { ip: string; length: number }, address: string): boolean {
    const family = address.includes(':') ? 'ipv6' : 'ipv4';
    if (family !== (range.ip.includes(':') ? 'ipv6' : 'ipv4')) return false;
    const list = new BlockList();
    list.addSubnet(range.ip, range.length, family);
    return list.check(address, family);
  }

  const range = fc.oneof(
    fc.record({ ip: ipv4, length: fc.integer({ min: 0, max: 32 }) }),
    fc.record({ ip: ipv6, length: fc.integer({ min: 0, max: 128 }) }),
  );

  it('are found by the longest prefix that holds the address', () => {
    fc.assert(
      fc.property(
        fc.array(range, { maxLength: 20 }),
        fc.array(fc.oneof(ipv4, ipv6), { maxLength: 10 }),
        (all, more) => {
          const plain = all.filter(({ ip }) => !parseIp(ip)!.isIpv4 || !ip.includes(':'));
          const trie = new PrefixTrie<string>();
          for (const { ip, length } of plain) {
            const prefix: IpPrefix = parsePrefix(ip, length)!;
            trie.set(prefix, prefixKey(prefix));
          }
          for (const address of [...more, ...plain.map(({ ip }) => ip)]) {
            const ip = parseIp(address)!;
            if (ip.isIpv4 && address.includes(':')) continue;
            const fitting = plain.filter((one) => holds(one, address)).sort((a, b) => b.length - a.length)[0];
            const expected = fitting && prefixKey(parsePrefix(fitting.ip, fitting.length)!);
            assert.equal(trie.find(ip), expected);
          }
        },
      ),
    );
  });
});
