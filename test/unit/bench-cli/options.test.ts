import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SUITE_NAMES } from '../../../src/bench-cli/case.ts';
import { parseOptions } from '../../../src/bench-cli/options.ts';

const parse = (...argv: string[]) => parseOptions(argv, '1.2.3');

describe('the command line of weir-bench', () => {
  it('measures one suite with sizes and effort that suit a coffee break', () => {
    assert.deepEqual(parse('maglev'), {
      kind: 'measure',
      suites: ['maglev'],
      sizes: { hosts: [10, 100, 1000], tableSizes: [65_537], ringSizes: [1024] },
      effort: { rounds: 9, roundMs: 15 },
      json: undefined,
      gate: undefined,
    });
  });

  it('takes sizes, effort, report and gate from options in any order', () => {
    const argv = ['--hosts', '3,5,3', '--rounds=4', 'all', '--json', 'a.json', '--baseline=b.json'];
    const options = parse(...argv, '--max-regression', '1.5', '--ring-size', '64', '--table-size=31', '--round-ms=2');
    assert.deepEqual(options, {
      kind: 'measure',
      suites: SUITE_NAMES,
      sizes: { hosts: [3, 5], tableSizes: [31], ringSizes: [64] },
      effort: { rounds: 4, roundMs: 2 },
      json: 'a.json',
      gate: { baselineFile: 'b.json', maxRegression: 1.5 },
    });
  });

  it('allows a tenth of regression where a baseline comes without a limit', () => {
    const options = parse('all', '--baseline', 'b.json');
    assert.deepEqual(options.kind === 'measure' && options.gate, { baselineFile: 'b.json', maxRegression: 1.1 });
  });

  it('reads what a distribution report is to show', () => {
    assert.deepEqual(parse('distribution', '--hosts', '10', '--keys', '500', '--weights', '1,2'), {
      kind: 'distribution',
      hosts: [10],
      keys: 500,
      weights: [1, 2],
      tableSizes: [65_537],
      ringSizes: [1024],
    });
  });

  it('answers --help and --version with text', () => {
    const help = parse('--help');
    assert.ok(help.kind === 'help');
    for (const name of [...SUITE_NAMES, '--baseline', '--max-regression', 'Exit codes']) {
      assert.ok(help.text.includes(name), name);
    }
    assert.deepEqual(parse('--version'), { kind: 'help', text: '1.2.3\n' });
  });

  const faults: { argv: string[]; says: string }[] = [
    { argv: [], says: 'say what to run: one of histogram, maglev, ring-hash,' },
    { argv: ['maglv'], says: 'maglv: no such suite, did you mean maglev?; one of histogram,' },
    { argv: ['maglev', 'all'], says: 'all: one suite at a time, or all' },
    { argv: ['all', '--host', '3'], says: '--host: no such option, did you mean hosts?' },
    { argv: ['all', '--hosts', '10,x'], says: '--hosts: "x" is not a whole number from 1 to 65535' },
    { argv: ['all', '--hosts', '0'], says: '--hosts: "0" is not a whole number from 1 to 65535' },
    { argv: ['all', '--hosts='], says: '--hosts: "" is not a whole number' },
    { argv: ['all', '--rounds', '2'], says: '--rounds: "2" is not a whole number from 3 to 1000' },
    { argv: ['all', '--json'], says: 'Not enough arguments following: json' },
    {
      argv: ['all', '--max-regression', '2'],
      says: '--max-regression: there is nothing to compare without --baseline',
    },
    {
      argv: ['all', '--baseline', 'b', '--max-regression', '0.5'],
      says: '--max-regression: 0.5 is not a factor of 1 or more',
    },
    {
      argv: ['all', '--baseline', 'b', '--max-regression', 'ten'],
      says: '--max-regression: ten is not a factor of 1 or more',
    },
  ];
  for (const { argv, says } of faults) {
    it(`refuses ${['weir-bench', ...argv].join(' ')}`, () => {
      const options = parse(...argv);
      assert.ok(options.kind === 'fault');
      assert.ok(options.text.startsWith(`weir-bench: ${says}`), options.text);
      assert.match(options.text, /--help lists all options\n$/);
    });
  }
});
