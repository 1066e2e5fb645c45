import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import type { MonitoredResource } from '../../../../src/config/index.ts';
import { pressureOf } from '../../../../src/control-plane/overload/pressure.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'weir-pressure-'));
after(() => rmSync(folder, { recursive: true }));

const PROCESS = { heapBytes: async () => 300, connections: () => 5 };

function pressure(resource: MonitoredResource, groups = folder): Promise<number> {
  return pressureOf(resource, PROCESS, groups);
}

function file(name: string, text: string): string {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

test('heap and connections are parts of their limits, which may be exceeded', async () => {
  assert.equal(await pressure({ kind: 'heap', maxBytes: 400 }), 0.75);
  assert.equal(await pressure({ kind: 'connections', max: 4 }), 1.25);
});

test('a file says a number from 0 to 1, and nothing else', async () => {
  const read = (text: string) => pressure({ kind: 'file', path: file('share', text) });
  assert.equal(await read('0.25\n'), 0.25);
  assert.equal(await read('1'), 1);
  assert.equal(await read('0'), 0);
  for (const text of ['1.01', '-0.1', '', ' \n', 'high']) await assert.rejects(read(text), /share holds/);
  await assert.rejects(pressure({ kind: 'file', path: path.join(folder, 'none') }), /ENOENT/);
});

test('memory of the group is a part of the lower of two limits', async () => {
  const of = (maxBytes: number) => pressure({ kind: 'group-memory', maxBytes }, path.join(folder, 'v2'));
  file('v2/memory.current', '600\n');
  file('v2/memory.max', '1000\n');
  assert.equal(await of(Number.POSITIVE_INFINITY), 0.6);
  assert.equal(await of(2000), 0.6);
  assert.equal(await of(800), 0.75);
  file('v2/memory.max', 'max\n');
  assert.equal(await of(Number.POSITIVE_INFINITY), 0);
  assert.equal(await of(1200), 0.5);
});

test('groups of version 1 are read where there are none of version 2', async () => {
  file('v1/memory/memory.usage_in_bytes', '10');
  file('v1/memory/memory.limit_in_bytes', '40');
  const groups = path.join(folder, 'v1');
  assert.equal(await pressure({ kind: 'group-memory', maxBytes: Number.POSITIVE_INFINITY }, groups), 0.25);
  await assert.rejects(
    pressure({ kind: 'group-memory', maxBytes: 1 }, path.join(folder, 'nowhere')),
    /memory\.max.*memory\.limit_in_bytes/,
  );
});
