import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cpuPprof, heapPprof } from '../../../../src/control-plane/profiling/engine-profiles.ts';
import { PprofProfile } from '../../../../src/control-plane/profiling/pprof.ts';
import { goToolPprof, hasGoTool, readProfile } from '../../../support/pprof.ts';

const TIME = { beganMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678), durationMs: 1500.5 };

function frame(functionName: string, line = -1, url = '') {
  return { functionName, url, lineNumber: line, columnNumber: line };
}

/** work ─ calls inner; beside it the engine's own nodes. */
const CPU = JSON.stringify({
  nodes: [
    { id: 1, callFrame: frame('(root)'), children: [2, 3, 5] },
    { id: 2, callFrame: frame('(idle)') },
    { id: 3, callFrame: frame('work', 9, 'node:net'), children: [4] },
    { id: 4, callFrame: frame('', 19, `file://${process.cwd()}/src/inner.ts`) },
    { id: 5, callFrame: frame('(program)') },
  ],
  samples: [2, 3, 4, 4, 5, 2],
  timeDeltas: [900, 1000, 2000, 3000, 4000, 700],
});

const HEAP = JSON.stringify({
  head: {
    id: 1,
    callFrame: frame('(root)'),
    children: [
      {
        id: 2,
        callFrame: frame('make', 4, 'node:fs'),
        children: [{ id: 3, callFrame: frame('deep', 6, 'node:fs'), children: [] }],
      },
    ],
  },
  samples: [
    { nodeId: 3, size: 100 },
    { nodeId: 3, size: 28 },
    { nodeId: 2, size: 7 },
  ],
});

describe('a profile for pprof', () => {
  it('has the times of stacks on processors, and not of threads at rest', async () => {
    const file = await cpuPprof(
      [
        { thread: 'main', json: CPU },
        { thread: 'worker_0', json: CPU },
      ],
      TIME,
      5_000_000,
    );
    const { samples, ...rest } = readProfile(file);
    assert.deepEqual(rest, {
      types: ['samples/count', 'cpu/nanoseconds'],
      defaultType: 'cpu',
      ...TIME,
      period: 5_000_000,
    });
    const expected = (thread: string) => [
      { thread, stack: ['work node:net:10'], values: [1, 1_000_000] },
      { thread, stack: ['(anonymous) src/inner.ts:20', 'work node:net:10'], values: [2, 5_000_000] },
      { thread, stack: ['(program) :0'], values: [1, 4_000_000] },
    ];
    assert.deepEqual(samples, [...expected('main'), ...expected('worker_0')]);
  });

  it('has what stacks have allocated that is still there', async () => {
    const { samples, types, defaultType } = readProfile(await heapPprof([{ thread: 'main', json: HEAP }], TIME, 512));
    assert.deepEqual([types, defaultType], [['inuse_objects/count', 'inuse_space/bytes'], 'inuse_space']);
    assert.deepEqual(samples, [
      { thread: 'main', stack: ['make node:fs:5'], values: [1, 7] },
      { thread: 'main', stack: ['deep node:fs:7', 'make node:fs:5'], values: [2, 128] },
    ]);
  });

  it('may have nothing in it', async () => {
    const nothing = JSON.stringify({ nodes: [], samples: [], timeDeltas: [] });
    assert.deepEqual(readProfile(await cpuPprof([{ thread: 'main', json: nothing }], TIME, 1)).samples, []);
    assert.deepEqual(readProfile(await cpuPprof([], TIME, 1)).samples, []);
  });

  it('holds numbers beyond 32 bits, and names of any characters', async () => {
    const profile = new PprofProfile({ ...TIME, valueTypes: [['a', 'b']], periodType: ['a', 'b'], period: 1 });
    const location = profile.location({ name: 'grün "✓"', file: 'ä.ts', line: 3 });
    assert.equal(profile.location({ name: 'grün "✓"', file: 'ä.ts', line: 3 }), location);
    profile.add('main', [location], [Number.MAX_SAFE_INTEGER]);
    const { samples } = readProfile(await profile.finish());
    assert.deepEqual(samples, [{ thread: 'main', stack: ['grün "✓" ä.ts:3'], values: [Number.MAX_SAFE_INTEGER] }]);
  });

  it('is read by go tool pprof', async (t) => {
    if (!(await hasGoTool())) return t.skip('go is not installed');
    const cpu = await cpuPprof([{ thread: 'main', json: CPU }], TIME, 5_000_000);
    const top = await goToolPprof(cpu, '-top', '-cum');
    assert.match(top, /Duration: 1\.50s, Total samples = 10ms/);
    assert.match(top, /1ms 10\.00% .* 6ms 60\.00% {2}work$/m);
    assert.match(await goToolPprof(cpu, '-tags'), /thread: Total 10\.0ms\n.*main/);
    const heap = await heapPprof([{ thread: 'worker_1', json: HEAP }], TIME, 512);
    assert.match(await goToolPprof(heap, '-top'), /128B .* {2}deep$/m);
  });
});
