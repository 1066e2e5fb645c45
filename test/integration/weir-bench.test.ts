// weir-bench as a user runs it, and its gate: passed by the code it was made from, failed by a slower copy. The slower
// copy is the real suite with each of its operations done eight times; only tests can hand suites in. What the gate
// compares is time of a clock that the operations themselves turn: a busy machine cannot change a verdict.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { type Clock, SYSTEM_CLOCK } from '../../src/base/clock.ts';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import type { BenchCase, Body, Suites } from '../../src/bench-cli/case.ts';
import type { Report } from '../../src/bench-cli/report.ts';
import { runBench } from '../../src/bench-cli/run.ts';
import { SUITES } from '../../src/bench-cli/suites.ts';
import { runProgram } from '../support/child-process.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'weir-bench-test-'));
after(() => rmSync(folder, { recursive: true }));
const fileIn = (name: string): string => path.join(folder, name);

const SHORT = ['--rounds', '3', '--round-ms', '2'];

const MAIN = path.join(PACKAGE_ROOT, 'src/bench-cli/main.ts');

function weirBench(...args: string[]) {
  return runProgram(process.execPath, [MAIN, ...args]);
}

/** @param script in which "$@" is the command with arguments that make it print little. */
function printingIn(script: string) {
  const args = ['distribution', '--hosts', '3', '--table-size', '31', '--ring-size', '16', '--keys', '100'];
  return runProgram('sh', [
    '-c',
    script,
    'sh',
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    MAIN,
    ...args,
  ]);
}

/** In this process, with the suites given; what a terminal would see goes to `stderr`. */
function run(suites: Suites, args: readonly string[], { isTTY = false, clock = SYSTEM_CLOCK } = {}) {
  const out = { stdout: '', stderr: '' };
  const stream = (name: keyof typeof out) => ({
    isTTY,
    write: (text: string) => {
      out[name] += text;
    },
  });
  const context = { stdout: stream('stdout'), stderr: stream('stderr'), release: '1.2.3', suites, clock };
  return { code: runBench(args, context), ...out };
}

function slowed(benchCase: BenchCase): BenchCase {
  return {
    ...benchCase,
    open() {
      const { subject, ...rest } = benchCase.open();
      return {
        ...rest,
        subject: (times) => {
          for (let n = 0; n < 8; n += 1) subject(times);
        },
      };
    },
  };
}

describe('weir-bench', () => {
  it('prints a table on stdout and nothing else, and writes the report', async () => {
    const file = fileIn('report.json');
    const { code, stdout, stderr } = await weirBench(
      'maglev',
      '--hosts',
      '3,7',
      '--table-size',
      '101',
      '--json',
      file,
      ...SHORT,
    );
    assert.equal(stderr, '');
    assert.equal(code, 0);
    assert.match(stdout, /^weir \S+, Node \S+, /);
    assert.match(stdout, /\nsuite +operation +weir +plain TypeScript +ratio +spread +cold\n/);
    const report = JSON.parse(readFileSync(file, 'utf8')) as Report;
    assert.equal(report.format, 1);
    assert.deepEqual(report.effort, { rounds: 3, roundMs: 2 });
    assert.equal(report.machine.node, process.versions.node);
    assert.ok(Date.parse(report.date) > Date.parse('2020-01-01'));
    assert.deepEqual(
      report.rows.map(({ suite, name }) => `${suite}: ${name}`),
      [3, 7].flatMap((hosts) =>
        ['build', 'look up a hash', 'hash and look up a 21-byte key'].map(
          (operation) => `maglev: ${operation}, 101 entries, ${hosts} hosts`,
        ),
      ),
    );
    for (const row of report.rows) {
      const { suite, name, spread, ...figures } = row;
      assert.ok(stdout.includes(name));
      assert.deepEqual(Object.keys(figures).sort(), ['coldNs', 'ratio', 'subjectNs', 'twinNs']);
      for (const [key, value] of Object.entries(figures))
        assert.ok(value > 0 && value < 1e12, `${name}: ${key} ${value}`);
      assert.ok(spread >= 0);
    }
  });

  it('measures every suite', () => {
    const { code, stdout } = run(SUITES, ['all', '--hosts', '3', '--table-size', '31', '--ring-size', '16', ...SHORT]);
    assert.equal(code, 0);
    for (const suite of Object.keys(SUITES)) assert.match(stdout, new RegExp(`\\n${suite} `));
  });

  it('shows its progress on a terminal and wipes it away', () => {
    const { stderr } = run(SUITES, ['counters', ...SHORT], { isTTY: true });
    assert.match(stderr, /\[1\/2\] counters: add 1/);
    assert.ok(stderr.endsWith('\r\x1b[K'));
  });

  it('refuses bad options with a reason and code 2', async () => {
    const { code, stdout, stderr } = await weirBench('maglev', '--table-sizes', '31');
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^weir-bench: --table-sizes: no such option, did you mean table-size\?\n/);
  });

  it('ends as it would have when its reader has gone', async () => {
    const { code, stderr } = await printingIn(`trap '' PIPE
      { while echo 2> /dev/null; do :; done; "$@"; echo "code $?" >&2; } | true`);
    assert.deepEqual([code, stderr], [0, 'code 0\n']);
  });

  it('says in a line that the disk is full, with code 2', async () => {
    const { code, stderr } = await printingIn('exec "$@" > /dev/full');
    assert.deepEqual([code, stderr], [2, 'weir-bench: standard output: ENOSPC: no space left on device, write\n']);
    assert.equal((await printingIn('"$@" > /dev/full 2> /dev/full')).code, 2);
  });

  it('says which table size is not prime', async () => {
    const { code, stderr } = await weirBench('maglev', '--table-size', '100', ...SHORT);
    assert.equal(code, 2);
    assert.equal(stderr, 'weir-bench: tableSize: 100 is not a prime number\n');
  });
});

/** A clock that stands still until an operation turns it. */
class WorkClock implements Clock {
  #nowMs = 0;

  monotonicMs = (): number => this.#nowMs;

  wallMs = (): number => SYSTEM_CLOCK.wallMs() + this.#nowMs;

  after = (): never => assert.fail('nothing waits');

  /** The body, with each of its operations taking so long. */
  timed(body: Body, ns: number): Body {
    return (times) => {
      body(times);
      this.#nowMs += (times * ns) / 1e6;
    };
  }
}

describe('the gate of weir-bench', () => {
  const clock = new WorkClock();
  const counters: Suites['counters'] = (sizes) =>
    SUITES.counters(sizes).map((benchCase) => ({
      ...benchCase,
      open() {
        const { subject, twin, ...rest } = benchCase.open();
        return { ...rest, subject: clock.timed(subject, 3), twin: clock.timed(twin, 4) };
      },
    }));
  const suites: Suites = { ...SUITES, counters };
  const baseline = fileIn('baseline.json');
  const gate = ['counters', ...SHORT, '--baseline', baseline, '--max-regression', '3'];

  it('is passed by the code that the baseline was made from', () => {
    assert.equal(run(suites, ['counters', ...SHORT, '--json', baseline], { clock }).code, 0);
    const { code, stdout } = run(suites, gate, { clock });
    assert.match(stdout, /\ngate: 2 rows compared, none more than 3 times the baseline\n$/);
    assert.equal(code, 0);
  });

  it('is failed by a copy that is eight times slower, naming the rows', () => {
    const slower: Suites = { ...suites, counters: (sizes) => counters(sizes).map(slowed) };
    const { code, stdout } = run(slower, gate, { clock });
    assert.equal(code, 1);
    const verdict = stdout.slice(stdout.indexOf('\ngate: '));
    assert.match(verdict, /2 of 2 rows are more than 3 times the baseline, measured twice\n/);
    const factor = Number(/\ncounters: add 1 +\S+ +\S+ +(\S+)\n/.exec(verdict)?.[1]);
    assert.equal(factor, 8);
    assert.match(verdict, /\ncounters: add to 64 counters in turn /);
  });

  it('ends the command with code 1 when the baseline was a hundred times faster', async () => {
    const report = JSON.parse(readFileSync(baseline, 'utf8')) as Report;
    const rows = report.rows.map((row) => ({ ...row, ratio: row.ratio / 100 }));
    const faster = fileIn('faster.json');
    writeFileSync(faster, JSON.stringify({ ...report, rows }));
    const { code, stdout, stderr } = await weirBench('counters', ...SHORT, '--baseline', faster);
    assert.equal(stderr, '');
    assert.equal(code, 1);
    assert.match(stdout, /slower than allowed/);
  });

  it('measures what seems slower again, and lets it pass when only the first time was disturbed', () => {
    let opened = 0;
    const disturbed: Suites = {
      ...suites,
      counters: (sizes) =>
        counters(sizes).map((benchCase) => ({
          ...benchCase,
          open() {
            opened += 1;
            return opened <= 2 ? slowed(benchCase).open() : benchCase.open();
          },
        })),
    };
    const { code, stdout } = run(disturbed, gate, { clock });
    assert.equal(opened, 4);
    assert.match(stdout, /2 rows compared, none more than 3 times the baseline/);
    assert.equal(code, 0);
  });

  it('does not start measuring with a baseline that it cannot read or that has nothing of this run', () => {
    const cases: { args: string[]; says: string }[] = [
      { args: ['counters', '--baseline', fileIn('none.json')], says: '--baseline: cannot read ' },
      {
        args: ['counters', '--baseline', path.join(PACKAGE_ROOT, 'package.json')],
        says: 'is not a report of weir-bench',
      },
      { args: ['histogram', '--baseline', baseline], says: 'has no row of this run' },
    ];
    for (const { args, says } of cases) {
      const { code, stdout, stderr } = run(SUITES, args);
      assert.deepEqual([code, stdout], [2, '']);
      assert.ok(stderr.includes(says), stderr);
    }
  });
});

describe('weir-bench distribution', () => {
  const args = ['distribution', '--hosts', '5,20', '--keys', '20000', '--weights', '1,3', '--table-size', '10007'];

  it('shows how keys spread by weight and that few move, the same each time', () => {
    const { code, stdout } = run(SUITES, args);
    assert.equal(code, 0);
    const line = /\n +20 {2}maglev 10007 +(\S+) +(\S+) +(\S+) +(\S+)% \((\S+)%\) +(\S+)% \((\S+)%\)\n/.exec(stdout);
    const [min, max, stddev, leaves, leavesLeast, joins, joinsLeast] = line!.slice(1).map(Number);
    assert.ok(min! > 0.8 && min! < 1 && max! > 1 && max! < 1.2 && stddev! < 0.1);
    // Maglev moves a few keys more than it must; the published tables stay within some percent of all keys.
    assert.ok(leavesLeast! <= leaves! && leaves! < leavesLeast! + 5);
    assert.ok(joinsLeast! <= joins! && joins! < joinsLeast! + 5);
    assert.match(stdout, /\n +20 {2}round robin +1\.00 +1\.00 +\S+\n/);
    assert.match(stdout, /\nleast request, 5 hosts: hosts by load\n {2}\d\.\d{3} to \d\.\d{3} \|#+ \d+\n/);
    assert.equal(run(SUITES, args).stdout, stdout);
  });
});
