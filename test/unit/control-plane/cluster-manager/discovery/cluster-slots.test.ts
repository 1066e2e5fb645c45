// What servers of Redis say of their cluster, in the forms of several versions, and what is no such answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { arrayOf, bulk, failure, integer } from '../../../../../src/base/resp.ts';
import { namesIn, readClusterSlots } from '../../../../../src/control-plane/cluster-manager/discovery/cluster-slots.ts';

const node = (ip: string, port: number, ...more: Buffer[]): Buffer => arrayOf([bulk(ip), integer(port), ...more]);
const range = (first: number, last: number, ...nodes: Buffer[]): Buffer =>
  arrayOf([integer(first), integer(last), ...nodes]);
const read = (...ranges: Buffer[]) => readClusterSlots(arrayOf(ranges), '10.0.0.9');
const primary = (ip: string, port: number, ...slots: (readonly [number, number])[]) => ({
  ip,
  name: '',
  port,
  role: { kind: 'primary', slots },
});

test('a primary has all of its ranges, and replicas know whose they are', () => {
  const id = bulk('09dbe9720cda62f7865eabc5fd8857c5d2678366');
  assert.deepEqual(
    read(
      range(10, 20, node('10.0.0.1', 6379, id), node('10.0.0.3', 6379, id)),
      range(0, 5, node('10.0.0.1', 6379, id, arrayOf([])), node('10.0.0.3', 6379, id)),
      range(6, 9, node('fd00::1', 6380)),
    ),
    [
      primary('10.0.0.1', 6379, [0, 5], [10, 20]),
      primary('fd00::1', 6380, [6, 9]),
      { ip: '10.0.0.3', name: '', port: 6379, role: { kind: 'replica', of: '10.0.0.1:6379' } },
    ],
  );
});

test('who does not say where it is is where it was asked', () => {
  const nothing = arrayOf([Buffer.from('$-1\r\n'), integer(7000)]);
  for (const first of [node('', 7000), node('?', 7000), nothing]) {
    assert.deepEqual(read(range(0, 1, first)), [primary('10.0.0.9', 7000, [0, 1])]);
  }
});

test('names stand for the addresses that they have, and replicas without one are left out', () => {
  const message = arrayOf([
    range(0, 5, node('redis-1.test', 6379), node('redis-3.test', 6379), node('redis-4.test', 6379)),
    range(6, 9, node('10.0.0.2', 6379), node('?', 1), node('', 1)),
  ]);
  assert.deepEqual(namesIn(message), ['redis-1.test', 'redis-3.test', 'redis-4.test']);
  const addresses = new Map([
    ['redis-1.test', '10.0.0.1'],
    ['redis-3.test', 'fd00::3'],
  ]);
  assert.deepEqual(readClusterSlots(message, '10.0.0.9', addresses), [
    { ...primary('10.0.0.1', 6379, [0, 5]), name: 'redis-1.test' },
    primary('10.0.0.2', 6379, [6, 9]),
    { ip: 'fd00::3', name: 'redis-3.test', port: 6379, role: { kind: 'replica', of: '10.0.0.1:6379' } },
    { ip: '10.0.0.9', name: '', port: 1, role: { kind: 'replica', of: '10.0.0.2:6379' } },
  ]);
});

test('what could not be a name is none, and has no address', () => {
  const message = arrayOf([range(0, 5, node('redis 1/test', 6379))]);
  assert.deepEqual(namesIn(message), []);
  assert.throws(() => readClusterSlots(message, '10.0.0.9'), /which has no address/);
});

test('no ranges are no servers', () => assert.deepEqual(read(), []));

for (const [what, message, error] of [
  ['an error', failure('ERR This instance has cluster support disabled'), /cluster support disabled/],
  ['a range without a server', arrayOf([range(0, 1)]), /without a server/],
  ['slots beyond the last', arrayOf([range(0, 16_384, node('10.0.0.1', 1))]), /range of slots/],
  ['a range that ends before it begins', arrayOf([range(5, 4, node('10.0.0.1', 1))]), /range of slots/],
  ['a port that is none', arrayOf([range(0, 1, node('10.0.0.1', 65_536))]), /without address/],
  ['a server that is no list', arrayOf([range(0, 1, bulk('10.0.0.1'))]), /without address/],
  ['a range that is none', arrayOf([bulk('x')]), /range of slots/],
  [
    'a name that has no address',
    arrayOf([range(0, 1, node('redis-1.test', 1))]),
    /names "redis-1\.test", which has no/,
  ],
] as const) {
  test(`${what} is no answer`, () => assert.throws(() => readClusterSlots(message, '10.0.0.9'), error));
}

test('there are no more servers than there can be', () => {
  const ranges = Array.from({ length: 4097 }, (_, at) => range(at, at, node('10.0.0.1', at + 1)));
  assert.throws(() => read(...ranges), /more than 4096 servers/);
});
