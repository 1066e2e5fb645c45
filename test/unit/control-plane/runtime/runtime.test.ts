import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { RuntimeTexts } from '../../../../src/base/runtime.ts';
import type { RuntimeLayerSettings } from '../../../../src/config/index.ts';
import { Runtime, type RuntimeDependencies } from '../../../../src/control-plane/runtime/runtime.ts';
import type { ValueFiles } from '../../../../src/control-plane/runtime/value-files.ts';
import { Loggers } from '../../../../src/log/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { listing, type StatsFixture, statsFixture } from '../../../support/stats.ts';
import { fileSources } from '../../../support/subscriptions.ts';

function layer(name: string, values: Record<string, string>): RuntimeLayerSettings {
  return { name, kind: 'static', values: new Map(Object.entries(values)) };
}

const ADMIN: RuntimeLayerSettings = { name: 'admin', kind: 'admin', values: new Map() };

interface Opened extends StatsFixture {
  readonly runtime: Runtime;
  readonly published: RuntimeTexts[];
  readonly log: string[];
}

function filesIn(name: string, folder: string): RuntimeLayerSettings {
  return { name, kind: 'files', values: new Map(), files: { symlinkRoot: path.dirname(folder), folder } };
}

function open(found?: RuntimeDependencies['readFiles'] | ((folder: string) => ValueFiles)): Opened {
  const fixture = statsFixture();
  const published: RuntimeTexts[] = [];
  const log: string[] = [];
  const sink = {
    write: ({ level, message }: { level: string; message: string }) => void log.push(`${level}: ${message}`),
  };
  const runtime = new Runtime({
    faults: NO_FAULTS,
    hash: () => 0n,
    stats: fixture.store,
    workers: { publishRuntime: (texts) => published.push(texts) },
    clock: new ManualClock(),
    log: new Loggers({ levels: { default: 'info' }, threadId: 0, sink }).get('runtime'),
    subscriptions: fileSources(),
    ...(found ? { readFiles: inOneStep(found) } : {}),
  });
  return { ...fixture, runtime, published, log };
}

/** @param found what it returns, or what does so after steps of its own. */
function inOneStep(found: NonNullable<Parameters<typeof open>[0]>): NonNullable<RuntimeDependencies['readFiles']> {
  return function* (folder: string) {
    yield;
    const result = found(folder);
    return 'kind' in result ? result : yield* result;
  };
}

describe('the runtime', () => {
  it('gives the value of the last layer that has one, under either spelling', async () => {
    const { runtime } = open();
    await runtime.load([
      layer('a', { 'envoy.x': '1', 'proxy.y': '2', z: '3' }),
      layer('b', { 'proxy.x': '10', 'envoy.y': '', z: 'many' }),
    ]);
    assert.deepEqual(
      ['proxy.x', 'proxy.y', 'z', 'w'].map((key) => runtime.values.integer(key)),
      [10, 2, undefined, undefined],
    );
  });

  it('sends the workers what holds in the end, each time that layers are loaded', async () => {
    const { runtime, published } = open();
    const derived = runtime.values.derived((values) => values.integer('x'));
    const told: (number | undefined)[] = [];
    runtime.onChanged = () => told.push(derived.value);
    await runtime.load([layer('a', { 'envoy.x': '1', x: '2' }), layer('b', { x: '3', y: '' })]);
    assert.equal(derived.value, 3);
    await runtime.load([]);
    assert.equal(derived.value, undefined);
    assert.deepEqual(
      published.map((texts) => [...texts]),
      [
        [
          ['proxy.x', '1'],
          ['x', '3'],
        ],
        [],
      ],
    );
    assert.equal(told.length, published.length);
    assert.equal(told.at(-1), derived.value);
  });

  it('counts its layers and their keys', async () => {
    const { runtime, store } = open();
    await runtime.load([layer('a', { x: '1', y: '2' }), layer('b', { x: '3' })]);
    const shown = (await listing(store)).filter((line) => line.startsWith('runtime.'));
    const wanted = ['runtime.load_success: 1', 'runtime.num_keys: 2', 'runtime.num_layers: 2'];
    for (const line of wanted) assert.ok(shown.includes(line), shown.join('\n'));
  });

  it('has a layer that is written while it runs, under either spelling, and only there are values taken away', async () => {
    const { runtime, published, store } = open();
    const statLines = async (): Promise<string[]> =>
      (await listing(store)).filter((line) => /^runtime\.(?:admin|num_keys|load_success|override)/.test(line));
    await runtime.load([layer('base', { 'envoy.x': '1', y: '2' }), ADMIN, layer('last', { z: '3' })]);
    assert.equal(
      runtime.modify(
        new Map([
          ['proxy.x', '10'],
          ['z', '30'],
          ['w', '40'],
        ]),
      ),
      undefined,
    );
    assert.deepEqual(runtime.layers(), ['base', 'admin', 'last']);
    assert.deepEqual(runtime.entries(), [
      { key: 'envoy.x', values: ['1', '10', ''], final: '10' },
      { key: 'w', values: ['', '40', ''], final: '40' },
      { key: 'y', values: ['2', '', ''], final: '2' },
      { key: 'z', values: ['', '30', '3'], final: '3' },
    ]);
    assert.deepEqual(await statLines(), [
      'runtime.admin_overrides_active: 1',
      'runtime.load_success: 2',
      'runtime.num_keys: 4',
      'runtime.override_dir_exists: 0',
      'runtime.override_dir_not_exists: 2',
    ]);
    runtime.modify(
      new Map([
        ['envoy.x', ''],
        ['y', ''],
        ['z', ''],
        ['w', ''],
      ]),
    );
    assert.deepEqual(
      [...published.at(-1)!],
      [
        ['proxy.x', '1'],
        ['y', '2'],
        ['z', '3'],
      ],
    );
    assert.equal((await statLines())[0], 'runtime.admin_overrides_active: 0');
  });

  it('changes nothing without such a layer, and where it would grow too large', async () => {
    const { runtime, published } = open();
    await runtime.load([layer('base', { x: '1' })]);
    assert.equal(runtime.modify(new Map([['x', '2']])), 'no-admin-layer');
    await runtime.load([ADMIN]);
    const [before, half] = [published.length, 'v'.repeat(512 * 1024)];
    assert.equal(
      runtime.modify(
        new Map([
          ['a', half],
          ['b', half],
        ]),
      ),
      'full',
    );
    assert.equal(published.length, before);
    assert.deepEqual(runtime.entries(), []);
    assert.equal(runtime.modify(new Map([['a', half]])), undefined);
    assert.equal(runtime.modify(new Map([['b', half]])), 'full');
    assert.equal(
      runtime.modify(
        new Map([
          ['a', ''],
          ['b', half],
        ]),
      ),
      undefined,
    );
    assert.deepEqual(
      runtime.entries().map(({ key }) => key),
      ['b'],
    );
  });

  it('has layers of files, without those that are missing or cannot be read', async () => {
    const found: Record<string, ValueFiles> = {
      '/srv/root': {
        kind: 'read',
        values: new Map([
          ['x', '1'],
          ['upstream.use_retry', 'often'],
        ]),
      },
      '/srv/over': { kind: 'missing' },
      '/srv/last': { kind: 'failed', reason: 'too deep' },
    };
    const { runtime, store, log } = open((folder) => found[folder]!);
    const counts = async (): Promise<string[]> =>
      (await listing(store)).filter((line) => /^runtime\.(?:load|override|num_layers)/.test(line));
    await runtime.load([
      layer('base', { x: '0' }),
      filesIn('root', '/srv/root'),
      filesIn('over', '/srv/over'),
      filesIn('last', '/srv/last'),
      ADMIN,
    ]);
    assert.deepEqual(runtime.layers(), ['base', 'root', 'admin']);
    assert.equal(runtime.values.text('x'), '1');
    assert.deepEqual(await counts(), [
      'runtime.load_error: 1',
      'runtime.load_success: 0',
      'runtime.num_layers: 3',
      'runtime.override_dir_exists: 0',
      'runtime.override_dir_not_exists: 1',
    ]);
    const about = log.filter((line) => line.startsWith('warning: runtime layer'));
    assert.deepEqual(about, [
      'warning: runtime layer root: "upstream.use_retry" has no effect, as its value is neither a whole number of percent nor a fraction',
      'warning: runtime layer last is left out: too deep',
    ]);
    // Only a root that has been replaced has its files read again.
    found['/srv/over'] = { kind: 'read', values: new Map([['x', '2']]) };
    runtime.modify(new Map([['y', '3']]));
    assert.deepEqual([runtime.layers(), runtime.values.text('x')], [['base', 'root', 'admin'], '1']);
    runtime.close();
  });

  it('reads files again when another link is moved over their root, until it is closed', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-links-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const root = path.join(folder, 'current');
    const swap = (version: string): void => {
      mkdirSync(path.join(folder, version, 'values'), { recursive: true });
      writeFileSync(path.join(folder, version, 'values', 'x'), version);
      symlinkSync(version, path.join(folder, 'next'));
      renameSync(path.join(folder, 'next'), root);
    };
    swap('1');
    const { runtime, log } = open();
    await runtime.load([
      {
        name: 'disk',
        kind: 'files',
        values: new Map(),
        files: { symlinkRoot: root, folder: path.join(root, 'values') },
      },
    ]);
    assert.equal(runtime.values.text('x'), '1');
    swap('2');
    await eventually(() => runtime.values.text('x') === '2', 'the values of the second');
    rmSync(root);
    await eventually(() => runtime.values.text('x') === undefined, 'no values');
    swap('3');
    await eventually(() => runtime.values.text('x') === '3', 'the values of the third');
    assert.ok(log.includes(`info: runtime values are read again: ${root} has been replaced`), log.join('\n'));
    runtime.close();
    swap('4');
    await new Promise(setImmediate);
    assert.equal(runtime.values.text('x'), '3');
  });

  it('reads many files in slices, and those of a root that is replaced meanwhile once more from the beginning', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-links-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const swap = (root: string): void => {
      symlinkSync('.', path.join(folder, 'next'));
      renameSync(path.join(folder, 'next'), path.join(folder, root));
    };
    for (const root of ['large', 'small']) swap(root);
    let stepsLeft = 0;
    const begun: string[] = [];
    const fixture = statsFixture();
    const runtime = new Runtime({
      faults: NO_FAULTS,
      hash: () => 0n,
      stats: fixture.store,
      workers: { publishRuntime() {} },
      clock: new ManualClock(),
      log: new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } }).get('runtime'),
      subscriptions: fileSources(),
      *readFiles(from) {
        const name = path.basename(from);
        begun.push(name);
        for (; name === 'large' && stepsLeft > 0; stepsLeft -= 1) yield;
        return { kind: 'read', values: new Map([[name, String(begun.length)]]) };
      },
    });
    const layerAt = (name: string): RuntimeLayerSettings => {
      const root = path.join(folder, name);
      return { name, kind: 'files', values: new Map(), files: { symlinkRoot: root, folder: root } };
    };
    await runtime.load([layerAt('large'), layerAt('small')]);
    // As good as for ever: the event loop still turns.
    stepsLeft = Number.MAX_SAFE_INTEGER;
    swap('large');
    await eventually(() => begun.length === 3, 'another reading');
    swap('small');
    await eventually(() => runtime.values.text('small') === '4', 'the small one');
    assert.equal(runtime.values.text('large'), '1');
    swap('large');
    await eventually(() => begun.length === 5, 'the next reading');
    stepsLeft = 1;
    await eventually(() => runtime.values.text('large') === '5', 'the large one');
    assert.equal(runtime.values.text('small'), '4');
    assert.deepEqual(begun, ['large', 'small', 'large', 'small', 'large']);
    // Other layers call off what is being read for those of before.
    stepsLeft = Number.MAX_SAFE_INTEGER;
    swap('large');
    await eventually(() => begun.length === 6, 'a reading that has no end');
    await runtime.load([layerAt('small')]);
    const left = stepsLeft;
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    assert.equal(stepsLeft, left);
    assert.deepEqual([runtime.layers(), runtime.values.text('small')], [['small'], '7']);
    runtime.close();
  });

  it('keeps what is written, and what another root has brought, while many files are read', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-links-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const root = path.join(folder, 'root');
    const swap = (): void => {
      symlinkSync('.', path.join(folder, 'next'));
      renameSync(path.join(folder, 'next'), root);
    };
    swap();
    let stepsLeft = 0;
    let begun = 0;
    const read = new Map([['x', '1']]);
    const { runtime } = open(function* () {
      begun += 1;
      for (; stepsLeft > 0; stepsLeft -= 1) yield;
      return { kind: 'read', values: new Map(read) };
    });
    t.after(() => runtime.close());
    const files: RuntimeLayerSettings = {
      name: 'disk',
      kind: 'files',
      values: new Map(),
      files: { symlinkRoot: root, folder: root },
    };
    // A root that is replaced while it is read for the first time is read once more.
    stepsLeft = Number.MAX_SAFE_INTEGER;
    const loaded = runtime.load([files, ADMIN]);
    swap();
    await eventually(() => stepsLeft < Number.MAX_SAFE_INTEGER - 3000, 'some steps');
    read.set('x', '2');
    stepsLeft = 0;
    await loaded;
    await eventually(() => begun === 2 && runtime.values.text('x') === '2', 'the second reading');
    // What is written during a later one is there before it ends, and after.
    stepsLeft = Number.MAX_SAFE_INTEGER;
    swap();
    await eventually(() => begun === 3, 'the third reading');
    assert.equal(runtime.modify(new Map([['y', '3']])), undefined);
    assert.equal(runtime.values.text('y'), '3');
    read.set('x', '4');
    stepsLeft = 0;
    await eventually(() => runtime.values.text('x') === '4', 'its end');
    assert.equal(runtime.values.text('y'), '3');
    // Layers of before hold until those that follow have been read.
    stepsLeft = Number.MAX_SAFE_INTEGER;
    const following = runtime.load([files]);
    assert.deepEqual([runtime.layers(), runtime.values.text('y')], [['disk', 'admin'], '3']);
    stepsLeft = 0;
    await following;
    assert.deepEqual([runtime.layers(), runtime.values.text('y')], [['disk'], undefined]);
  });

  it('goes on without hearing of roots that cannot be watched', async () => {
    const { runtime, log } = open(() => ({ kind: 'missing' }));
    await runtime.load([filesIn('disk', '/nowhere/at/all/values')]);
    assert.deepEqual(runtime.layers(), []);
    assert.match(log.join(), /warning: \/nowhere\/at\/all is not watched: .*ENOENT/);
  });

  it('shows a key as the first layer spells it that has it, and nothing in force where all are empty', async () => {
    const { runtime } = open();
    await runtime.load([layer('a', { x: '' }), layer('b', { 'envoy.y': '1' }), layer('c', { 'proxy.y': '2' })]);
    assert.deepEqual(runtime.entries(), [
      { key: 'envoy.y', values: ['', '1', '2'], final: '2' },
      { key: 'x', values: ['', '', ''], final: '' },
    ]);
  });

  it('warns of ten values of a layer of files that have no effect, and of none that is empty', async () => {
    const values = new Map(Array.from({ length: 12 }, (_, index) => [`upstream.maintenance_mode.c${index}`, 'some']));
    const { runtime, log } = open(() => ({ kind: 'read', values }));
    await runtime.load([filesIn('disk', `${tmpdir()}/values`)]);
    assert.equal(log.filter((line) => line.includes('has no effect')).length, 10);
    values.clear();
    log.splice(0);
    values.set('upstream.use_retry', '');
    await runtime.load([filesIn('disk', `${tmpdir()}/values`)]);
    assert.deepEqual(log, []);
    runtime.close();
  });

  it('warns of features that it does not have, and of those that are asked for too late, wherever they come from', async () => {
    const values = new Map([
      ['envoy.reloadable_features.admin_stats_filter_use_re2', 'false'],
      ['envoy.reloadable_features.some', 'true'],
      ['proxy.restart_features.other', 'true'],
      ['proxy.restart_features.use_apple_api_for_dns_lookups', 'true'],
    ]);
    const { runtime, log } = open(() => ({ kind: 'read', values }));
    const guards = runtime.values;
    const re2 = 'proxy.reloadable_features.admin_stats_filter_use_re2';
    assert.equal(guards.hasFeature(re2), true);
    assert.equal(guards.hasFeature('proxy.restart_features.use_apple_api_for_dns_lookups'), false);
    await runtime.load([ADMIN, filesIn('disk', `${tmpdir()}/values`)]);
    const reasons = [
      '"envoy.reloadable_features.some" has no effect, as it is no feature of this build',
      '"proxy.restart_features.other" has no effect, as it is no feature of this build',
      '"proxy.restart_features.use_apple_api_for_dns_lookups" has no effect, as it counts only in a layer of the bootstrap, at the start',
    ];
    assert.deepEqual(
      log,
      reasons.map((reason) => `warning: runtime layer disk: ${reason}`),
    );
    assert.equal(guards.hasFeature(re2), false);
    log.splice(0);
    runtime.modify(new Map([['proxy.reloadable_features.third', '1']]));
    runtime.modify(new Map([['proxy.reloadable_features.third', '']]));
    assert.deepEqual(log, [
      'warning: runtime layer admin: "proxy.reloadable_features.third" has no effect, as it is no feature of this build',
    ]);
    runtime.close();
  });

  it('has room for exactly one MiB of text in the layer that is written', async () => {
    const { runtime } = open();
    await runtime.load([ADMIN]);
    assert.equal(runtime.modify(new Map([['a', 'v'.repeat(1024 * 1024)]])), 'full');
    assert.equal(runtime.modify(new Map([['a', 'v'.repeat(1024 * 1024 - 1)]])), undefined);
  });
});
