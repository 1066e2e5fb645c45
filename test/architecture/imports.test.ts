// The tree follows the import table and the owner rules of scripts/architecture/rules.ts, and the scanner that says so
// sees what it should: each rule is also shown a breach.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  boundaryBreaches,
  cycleBreaches,
  frontDoorBreaches,
  importBreaches,
  missingFileBreaches,
  ownerBreaches,
} from '../../scripts/architecture/breaches.ts';
import { parseModule, readModules, type SourceModule } from '../../scripts/architecture/modules.ts';
import { IMPORT_RULES, MAX_TYPE_KNOT } from '../../scripts/architecture/rules.ts';
import { readSourceText } from '../../scripts/architecture/source-text.ts';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';

const tree = readModules(PACKAGE_ROOT);

/** Modules as if the tree held only these files. */
function modulesOf(files: Record<string, string>): Map<string, SourceModule> {
  return new Map(Object.entries(files).map(([file, text]) => [file, parseModule(file, text)]));
}

describe('the source tree', () => {
  it('is read whole, so that an empty answer means something', () => {
    const imports = [...tree.values()].reduce((count, module) => count + module.imports.length, 0);
    assert.ok(tree.size > 100, `${tree.size} modules`);
    assert.ok(imports > tree.size, `${imports} imports`);
    assert.deepEqual(missingFileBreaches(tree), []);
  });

  it('keeps to the import table', () => {
    assert.deepEqual(importBreaches(tree), []);
  });

  it('has no row in the import table for a folder that is gone', () => {
    const units = new Set([...tree.values()].map((module) => module.unit));
    assert.deepEqual(
      Object.keys(IMPORT_RULES).filter((unit) => !units.has(unit)),
      [],
    );
  });

  it('enters a folder from outside through its index.ts', () => {
    assert.deepEqual(frontDoorBreaches(tree), []);
  });

  it('has no import cycle', () => {
    assert.deepEqual(cycleBreaches(tree), []);
  });

  it('keeps clocks, timers, randomness, environment, exit, patterns and WebAssembly with their owners', () => {
    assert.deepEqual(ownerBreaches(tree), []);
  });
});

describe('the boundary rules', () => {
  const breaches = (text: string): number =>
    boundaryBreaches(modulesOf({ 'src/control-plane/dns/exchange.ts': text })).length;

  it('hold on main', () => {
    assert.deepEqual(boundaryBreaches(tree), []);
  });

  it('see whatever begins a turn of the event loop, and accept it at a boundary', () => {
    const uses: [bare: string, bounded: string][] = [
      ["socket.on('data', (bytes) => read(bytes));", "socket.on('data', this.#faults.handler('x', read));"],
      ["socket.once(\n  'close',\n  onClose);", "socket.once(\n  'close',\n  faults.handler('x', onClose));"],
      ["signal.addEventListener('abort', end);", "signal.addEventListener('abort', faults.handler('x', end));"],
      ['watch(folder, {}, onChange);', "watch(folder, {}, faults.handler('x', onChange));"],
      ['setImmediate(work);', "setImmediate(deps.faults.handler('x', work));"],
      ['const later = { after: queueMicrotask };', "queueMicrotask(faults.handler('x', work));"],
      ['void this.#read();', "faults.run('x', () => this.#read());"],
      ['socket.end(() => socket.destroy());', "socket.end(faults.handler('x', () => socket.destroy()));"],
      ['call.write(bytes, (error) => end(error));', "call.write(bytes, faults.handler('x', end));"],
      ['const clock = SYSTEM_CLOCK;', 'const { clock } = deps;'],
      ['const clock = SYSTEM_CLOCK;', 'const clock = faults.clock(SYSTEM_CLOCK);'],
    ];
    for (const [bare, bounded] of uses) {
      assert.equal(breaches(bare), 1, bare);
      assert.equal(breaches(bounded), 0, bounded);
    }
    assert.equal(breaches('const end = (): void => {};\nfunction read(): void {\n}'), 0);
  });

  it('name the line, and leave other folders alone', () => {
    const text = "start();\nsocket.on('data',\n  read);";
    const [breach] = boundaryBreaches(modulesOf({ 'src/control-plane/a.ts': text }));
    assert.match(breach!, /^src\/control-plane\/a\.ts:2: a bare handler of an event .* FaultBoundary\.handler$/);
    assert.deepEqual(boundaryBreaches(modulesOf({ 'src/data-plane/a.ts': text })), []);
  });
});

describe('the import rules', () => {
  it('refuse the configuration to the data plane, naming the rule', () => {
    const modules = modulesOf({
      'src/data-plane/route/match.ts': "import { loadBootstrap } from '../../config/index.ts';\n",
    });
    assert.deepEqual(importBreaches(modules), [
      'src/data-plane/route/match.ts:1: data-plane (moves bytes; knows snapshots, never the configuration) may not import config: src/config/index.ts',
    ]);
  });

  it('allow config to name types of the snapshots, and nothing that runs', () => {
    const file = 'src/config/resources/cluster.ts';
    const typesOnly =
      "import type { A } from '../../snapshot/index.ts';\nimport { type B } from '../../snapshot/index.ts';";
    assert.deepEqual(importBreaches(modulesOf({ [file]: typesOnly })), []);
    const values = "import { type A, b } from '../../snapshot/index.ts';";
    assert.equal(importBreaches(modulesOf({ [file]: values })).length, 1);
  });

  it('refuse a folder without a row', () => {
    assert.deepEqual(importBreaches(modulesOf({ 'src/utils/misc.ts': '' })), [
      'src/utils/misc.ts: utils has no row in the import table',
    ]);
  });

  it("refuse a folder's inner file from outside, and its index.ts from inside", () => {
    const outside = modulesOf({ 'src/admin/server.ts': "import { x } from '../stats/scope.ts';" });
    assert.deepEqual(frontDoorBreaches(outside), [
      'src/admin/server.ts:1: import src/stats/index.ts instead of src/stats/scope.ts',
    ]);
    const bySide = modulesOf({ 'src/control-plane/at-need.ts': "import { x } from '../config/exchange.ts';" });
    assert.deepEqual(frontDoorBreaches(bySide), []);
    const inside = modulesOf({ 'src/stats/tags/rules.ts': "export * from '../index.ts';" });
    assert.equal(importBreaches(inside).length, 1);
  });

  it('find a cycle of three, through re-exports and imports on demand', () => {
    const modules = modulesOf({
      'src/stats/a.ts': "import { b } from './b.ts';",
      'src/stats/b.ts': "export * from './c.ts';",
      'src/stats/c.ts': "const a = await import('./a.ts');",
      'src/stats/d.ts': "import './a.ts';",
    });
    assert.deepEqual(cycleBreaches(modules), ['import cycle: src/stats/a.ts, src/stats/b.ts, src/stats/c.ts']);
  });

  it('let a few modules name one another in types, and refuse many', () => {
    const ring = (size: number): Map<string, SourceModule> =>
      modulesOf(
        Object.fromEntries(
          Array.from({ length: size }, (_, index) => [
            `src/stats/${index}.ts`,
            `import type { Next } from './${(index + 1) % size}.ts';`,
          ]),
        ),
      );
    assert.deepEqual(cycleBreaches(ring(MAX_TYPE_KNOT)), []);
    assert.equal(cycleBreaches(ring(MAX_TYPE_KNOT + 1)).length, 1);
  });
});

describe('the owner rules', () => {
  const breaches = (file: string, text: string): number => ownerBreaches(modulesOf({ [file]: text })).length;

  it('see each owned thing outside of its owner and accept it inside', () => {
    const uses: [use: string, owner: string][] = [
      ['Date.now()', 'src/base/clock.ts'],
      ['new Date()', 'src/base/wall-clock.ts'],
      ['setTimeout(f, 1)', 'src/base/clock.ts'],
      ['Math.random()', 'src/base/random.ts'],
      ['process.env.HOME', 'src/cli/parse.ts'],
      ['process.exit(1)', 'src/main.ts'],
      ['new RegExp(text)', 'src/base/regex.ts'],
      ['new WebAssembly.Memory(limits)', 'src/wasm/memory.ts'],
    ];
    for (const [use, owner] of uses) {
      assert.equal(breaches('src/data-plane/router/router.ts', `const x = ${use};`), 1, use);
      assert.equal(breaches(owner, `const x = ${use};`), 0, owner);
    }
  });

  it('do not mistake a comment, a string or a pattern for a use', () => {
    const innocent = [
      '// Date.now() is not called here',
      '/* setTimeout( */',
      "const text = 'process.exit(1)';",
      'const pattern = /Math.random/;',
      'const template = `new RegExp(`;',
    ].join('\n');
    assert.equal(breaches('src/data-plane/router/router.ts', innocent), 0);
  });

  it('see a use inside a template and after a division', () => {
    assert.equal(breaches('src/stats/a.ts', 'const text = `now $' + '{`$' + '{Date.now()}`} ms`;'), 1);
    assert.equal(breaches('src/stats/a.ts', 'const half = total / 2; const x = Math.random() / 2;'), 1);
  });
});

describe('the source reader', () => {
  it('finds every form of import with its line', () => {
    const text = [
      "import a, { type B } from './a.ts';",
      "import * as c from './c.ts';",
      'import {',
      '  type D,',
      '  type E,',
      "} from './d.ts';",
      "export type { F } from './f.ts';",
      "import './g.ts';",
      "const h = import('./h.ts');",
      "// import './comment.ts'",
      'const i = "import \'./string.ts\'";',
    ].join('\n');
    assert.deepEqual(readSourceText(text).imports, [
      { specifier: './a.ts', typesOnly: false, line: 1 },
      { specifier: './c.ts', typesOnly: false, line: 2 },
      { specifier: './d.ts', typesOnly: true, line: 3 },
      { specifier: './f.ts', typesOnly: true, line: 7 },
      { specifier: './g.ts', typesOnly: false, line: 8 },
      { specifier: './h.ts', typesOnly: false, line: 9 },
    ]);
  });
});
