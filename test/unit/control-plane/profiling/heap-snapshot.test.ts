import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getHeapSnapshot } from 'node:v8';
import fc from 'fast-check';
import { type HeapClass, HeapSnapshotReader } from '../../../../src/control-plane/profiling/heap-snapshot.ts';

const SECRET = 'pass"word \\ with ]} and "strings":[ in it';
const META = {
  node_fields: ['type', 'name', 'id', 'self_size', 'edge_count', 'detachedness'],
  node_types: [['hidden', 'object', 'string', 'closure'], 'string', 'number', 'number', 'number', 'number'],
};
const STRINGS = ['', 'Map', SECRET, 'onRead', '{key, other}', 'Naïve ✓'];
const NODES = [
  [1, 1, 1, 40, 0, 0],
  [1, 1, 3, 60, 2, 0],
  [2, 2, 5, 1000, 0, 0],
  [2, 1, 7, 24, 0, 0],
  [3, 3, 9, 64, 1, 0],
  [3, 0, 11, 32, 0, 0],
  [1, 4, 13, 16, 0, 0],
  [1, 5, 15, 8, 0, 0],
].flat();
const SNAPSHOT = `{"snapshot":${JSON.stringify({ meta: META, node_count: 8 })},\n"nodes":[${NODES.join(',\n')}],\n"edges":[1,2,3\n,4],\n"locations":[],\n"strings":[${STRINGS.map((text) => JSON.stringify(text)).join(',\n')}]}`;
const CLASSES: readonly HeapClass[] = [
  { kind: '(object)', name: 'Map', count: 2, bytes: 100 },
  { kind: '(string)', name: '(string)', count: 2, bytes: 1024 },
  { kind: '(closure)', name: 'onRead', count: 1, bytes: 64 },
  { kind: '(closure)', name: '(closure)', count: 1, bytes: 32 },
  { kind: '(object)', name: 'Object', count: 1, bytes: 16 },
  { kind: '(object)', name: 'Naïve ✓', count: 1, bytes: 8 },
];

function classesOf(pieces: Iterable<Buffer>): HeapClass[] {
  const reader = new HeapSnapshotReader();
  for (const piece of pieces) reader.push(piece);
  return reader.classes();
}

describe('the snapshot of a heap', () => {
  const bytes = Buffer.from(SNAPSHOT);

  it('is read as classes, without what strings and keys say', () => {
    assert.deepEqual(classesOf([bytes]), CLASSES);
  });

  it('is read the same wherever it is cut', () => {
    for (let at = 0; at <= bytes.length; at += 1) {
      assert.deepEqual(classesOf([bytes.subarray(0, at), bytes.subarray(at)]), CLASSES, `cut at ${at}`);
    }
    const cuts = fc
      .array(fc.nat({ max: bytes.length }), { maxLength: 30 })
      .map((each) => each.toSorted((a, b) => a - b));
    fc.assert(
      fc.property(cuts, (places) => {
        const edges = [0, ...places, bytes.length];
        const pieces = edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
        assert.deepEqual(classesOf(pieces), CLASSES);
      }),
    );
    assert.deepEqual(classesOf([...bytes].map((byte) => Buffer.of(byte))), CLASSES);
  });

  it('is refused when it ends in the middle', () => {
    for (const end of [0, 100, SNAPSHOT.indexOf('"edges"'), bytes.length - 2]) {
      assert.throws(() => classesOf([bytes.subarray(0, end)]), /ends in the middle/);
    }
  });

  it('of this process knows its classes', async () => {
    class Telltale {
      readonly what = SECRET + SECRET.length;
    }
    const kept = Array.from({ length: 321 }, () => new Telltale());
    const reader = new HeapSnapshotReader();
    for await (const piece of getHeapSnapshot()) reader.push(Buffer.from(piece as Buffer));
    const classes = reader.classes();
    assert.equal(classes.find(({ kind, name }) => kind === '(object)' && name === 'Telltale')?.count, kept.length);
    assert.ok(!classes.some(({ name }) => name.includes('pass"word')));
    const total = classes.reduce((sum, { bytes: size }) => sum + size, 0);
    assert.ok(total > 2 ** 20, `${total} bytes`);
  });
});
