import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { DiscoveredResponse, RuntimeLayerSettings, RuntimeResource } from '../../../../src/config/index.ts';
import { Runtime } from '../../../../src/control-plane/runtime/runtime.ts';
import type { Subscriptions } from '../../../../src/control-plane/subscription/subscription.ts';
import { Loggers } from '../../../../src/log/index.ts';
import type { JsonObject } from '../../../support/bootstrap.ts';
import { eventually } from '../../../support/eventually.ts';
import { NO_FAULTS } from '../../../support/faults.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { listing, statsFixture } from '../../../support/stats.ts';
import { answeredSources, fileSources } from '../../../support/subscriptions.ts';

const TYPE = 'type.googleapis.com/envoy.service.runtime.v3.Runtime';

/** As a decoded message has it. */
const TEXT = { kind: 'stringValue', stringValue: '1' };

function response(layer: JsonObject, { version = '1', name = 'some' } = {}): JsonObject {
  return { version_info: version, resources: [{ '@type': TYPE, name, layer }] };
}

/** As a subscription brings it. */
function respond(resources: readonly RuntimeResource[]): DiscoveredResponse<RuntimeResource> {
  const good = {
    isGood: true,
    message: new Uint8Array(0),
    warnings: [],
    deprecatedFields: new Map(),
    standsAlone: true,
  } as const;
  return {
    version: '1',
    extent: 'all',
    removed: [],
    names: resources.map(({ name }) => name),
    warnings: [],
    offered: () =>
      resources.map((resource) => ({
        name: resource.name,
        fingerprint: () => undefined,
        read: () => ({ ...good, name: resource.name, resource }),
      })),
  };
}

interface Options {
  readonly mode?: 'reject' | 'warn';
  readonly subscriptions?: Subscriptions;
}

function open(t: TestContext, { mode = 'warn', subscriptions }: Options = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-discovered-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const fixture = statsFixture();
  const clock = new ManualClock();
  const log: string[] = [];
  const sink = {
    write: ({ level, message }: { level: string; message: string }) => void log.push(`${level}: ${message}`),
  };
  const logger = new Loggers({ levels: { default: 'info' }, threadId: 0, sink }).get('runtime');
  const runtime = new Runtime({
    faults: NO_FAULTS,
    hash: (text) => BigInt(text.length),
    stats: fixture.store,
    workers: { publishRuntime() {} },
    clock,
    log: logger,
    subscriptions: subscriptions ?? fileSources(logger, mode),
  });
  t.after(() => runtime.close());
  const file = path.join(folder, 'layer.json');
  return {
    runtime,
    clock,
    log,
    file,
    folder,
    stats: async () => {
      const lines = await listing(fixture.store);
      return lines.filter((line) => /runtime\.(?:update_|init_|version:)/.test(line));
    },
    texts: () => [...fixture.store.textReadouts()].map(({ value }) => value),
    write(contents: JsonObject): void {
      writeFileSync(`${file}.next`, JSON.stringify(contents));
      renameSync(`${file}.next`, file);
    },
  };
}

function discovered(file: string, watchedFolder?: string): RuntimeLayerSettings {
  const source = {
    origin: { kind: 'file' as const, path: file, watchedFolder },
    resourceGeneration: 'v3' as const,
    initialFetchTimeoutMs: 700,
  };
  return { name: 'far', kind: 'discovered', values: new Map(), discovery: { resource: 'some', source } };
}

function fixed(name: string, values: Record<string, string>): RuntimeLayerSettings {
  return { name, kind: 'static', values: new Map(Object.entries(values)) };
}

describe('a runtime layer that comes by discovery', () => {
  it('stands at its place among the layers, with dotted keys, and follows the file that is moved over its own', async (t) => {
    const { runtime, clock, write, file, stats, texts, log } = open(t);
    write(response({ x: 1, 'envoy.a': { b: true }, share: { numerator: 5, denominator: 'MILLION' } }));
    await runtime.load([fixed('base', { x: '0', y: '0' }), discovered(file), fixed('last', { y: '2' })]);
    assert.deepEqual(runtime.layers(), ['base', 'far', 'last']);
    assert.deepEqual(runtime.entries(), [
      { key: 'envoy.a.b', values: ['', 'true', ''], final: 'true' },
      {
        key: 'share',
        values: ['', '{"numerator":5,"denominator":"MILLION"}', ''],
        final: '{"numerator":5,"denominator":"MILLION"}',
      },
      { key: 'x', values: ['0', '1', ''], final: '1' },
      { key: 'y', values: ['0', '', '2'], final: '2' },
    ]);
    write(response({ x: 3 }, { version: 'two' }));
    await eventually(() => runtime.values.text('x') === '3', 'the values of the second file');
    assert.deepEqual(runtime.values.text('share'), undefined);
    assert.ok(log.includes(`info: ${file} is read again: ${file} has changed`), log.join('\n'));
    assert.deepEqual(
      (await stats()).filter((line) => !/update_(?:time|duration)/.test(line)),
      [
        'runtime.init_fetch_timeout: 0',
        'runtime.update_attempt: 2',
        'runtime.update_failure: 0',
        'runtime.update_rejected: 0',
        'runtime.update_success: 2',
        'runtime.version: 3',
      ],
    );
    assert.deepEqual(texts(), ['two']);
    assert.ok((await stats()).includes(`runtime.update_time: ${clock.wallMs()}`));
    runtime.close();
    write(response({ x: 4 }));
    await new Promise(setImmediate);
    assert.equal(runtime.values.text('x'), '3');
  });

  it('keeps its values when it is refused, and says why', async (t) => {
    const { runtime, write, file, stats, log } = open(t);
    write(response({ x: 1 }));
    await runtime.load([discovered(file)]);
    const one = { '@type': TYPE, name: 'some', layer: { x: 2 } };
    const faulty: readonly [JsonObject, string][] = [
      [{ resources: [] }, `${file} is refused: it holds 0 runtime layers named "some" instead of 1`],
      [{ resources: [one, one] }, `${file} is refused: it holds 2 runtime layers named "some" instead of 1`],
      [
        response({ x: 2 }, { name: 'other' }),
        `${file} is refused: it holds 0 runtime layers named "some" instead of 1`,
      ],
      [
        response({ x: null, y: { z: [] } }),
        `${file} is refused: Invalid runtime entry value for x; Invalid runtime entry value for y.z`,
      ],
      [response({ x: 2 }, { name: '' }), `${file} is refused: ${file}:1:105: resources[0].name: must not be empty`],
      [
        { resources: [{ '@type': 'type.googleapis.com/envoy.config.cluster.v3.Cluster', name: 'x' }] },
        `${file} is refused: ${file}:1:15: resources[0]: is no proxy.service.runtime.v3.Runtime`,
      ],
    ];
    for (const [contents, reason] of faulty) {
      log.splice(0);
      write(contents);
      await eventually(() => log.length > 1, reason);
      assert.deepEqual(log.slice(1), [`warning: ${reason}`]);
      assert.equal(runtime.values.text('x'), '1');
    }
    assert.deepEqual((await stats()).slice(1, 4), [
      'runtime.update_attempt: 7',
      'runtime.update_failure: 0',
      'runtime.update_rejected: 6',
    ]);
    rmSync(file);
    await eventually(() => log.some((line) => line.includes('no such file')), 'a line about the file that is gone');
    write(response({ x: 5 }));
    await eventually(() => runtime.values.text('x') === '5', 'values again');
  });

  it('is empty at first where there is no file, which may come later, and keeps nobody waiting', async (t) => {
    const { runtime, write, file, log } = open(t);
    await runtime.load([fixed('base', { x: '0' }), discovered(file)]);
    assert.deepEqual([runtime.layers(), runtime.values.text('x')], [['base', 'far'], '0']);
    assert.match(log.join(), /warning: resources are not taken over: .*no such file/);
    write(response({ x: 1 }));
    await eventually(() => runtime.values.text('x') === '1', 'the values of the file');
  });

  it('keeps nobody waiting when its first answer is refused, nor other layers from what they have', async (t) => {
    const { runtime, write, file, folder } = open(t);
    write(response({ x: 1 }, { name: 'other' }));
    const root = path.join(folder, 'root');
    mkdirSync(root);
    writeFileSync(path.join(root, 'y'), '2');
    const disk: RuntimeLayerSettings = {
      name: 'disk',
      kind: 'files',
      values: new Map(),
      files: { symlinkRoot: root, folder: root },
    };
    await runtime.load([disk, discovered(file)]);
    assert.deepEqual([runtime.values.text('x'), runtime.values.text('y')], [undefined, '2']);
    write(response({ x: 3 }));
    await eventually(() => runtime.values.text('x') === '3', 'values that are not refused');
    assert.equal(runtime.values.text('y'), '2');
    // What is called off while it is read never takes effect.
    for (const layers of [[disk], [discovered(file)]]) {
      const called = runtime.load(layers);
      runtime.close();
      await called;
      assert.deepEqual(runtime.layers(), ['disk', 'far']);
    }
  });

  it('is waited for as long as it takes where the source says 0', async (t) => {
    const { runtime, clock } = open(t, { subscriptions: answeredSources() });
    let isLoaded = false;
    const { discovery, ...layer } = discovered('');
    const source = { ...discovery!.source, initialFetchTimeoutMs: 0 };
    void runtime.load([{ ...layer, discovery: { ...discovery!, source } }]).then(() => {
      isLoaded = true;
    });
    clock.turn(1_000_000);
    await new Promise(setImmediate);
    assert.equal(isLoaded, false);
  });

  it('is read again when something is moved into the folder that is watched, and then only', async (t) => {
    const { runtime, write, file, folder } = open(t);
    const watched = path.join(folder, 'watched');
    mkdirSync(watched);
    write(response({ x: 1 }));
    await runtime.load([discovered(file, watched)]);
    write(response({ x: 2 }));
    await new Promise(setImmediate);
    assert.equal(runtime.values.text('x'), '1');
    writeFileSync(path.join(folder, 'mark'), '');
    renameSync(path.join(folder, 'mark'), path.join(watched, 'mark'));
    await eventually(() => runtime.values.text('x') === '2', 'the values of the second file');
  });

  it('is warned of where a value can have no effect, and refused for unknown fields where that is asked for', async (t) => {
    const tolerant = open(t);
    const contents = { ...response({ 'upstream.use_retry': 'never' }), odd: 1 };
    tolerant.write(contents);
    await tolerant.runtime.load([discovered(tolerant.file)]);
    assert.equal(tolerant.runtime.values.text('upstream.use_retry'), 'never');
    assert.equal(tolerant.log.filter((line) => line.includes('odd')).length, 1, tolerant.log.join('\n'));
    assert.match(tolerant.log.join(), /runtime layer far: "upstream.use_retry" has no effect/);
    const strict = open(t, { mode: 'reject' });
    strict.write(contents);
    await strict.runtime.load([discovered(strict.file)]);
    assert.equal(strict.runtime.values.text('upstream.use_retry'), undefined);
    assert.match(strict.log.join(), /warning: resources are not taken over: .*odd/);
  });

  it('is waited for until its first answer, but no longer than the source says', async (t) => {
    let answer = (_: RuntimeResource[]): unknown => undefined;
    const opened = open(t, {
      subscriptions: answeredSources(({ owner }) => {
        answer = (resources) => owner.onResponse(respond(resources) as DiscoveredResponse<never>);
      }),
    });
    const { runtime, clock, stats, log } = opened;
    let isLoaded = false;
    const load = (): Promise<void> => {
      isLoaded = false;
      return runtime.load([discovered('')]).then(() => {
        isLoaded = true;
      });
    };
    const first = load();
    clock.turn(699);
    await new Promise(setImmediate);
    assert.equal(isLoaded, false);
    clock.turn(1);
    await first;
    assert.deepEqual(log, ['warning: runtime layer far: there has been no answer for 700 ms']);
    assert.ok((await stats()).includes('runtime.init_fetch_timeout: 1'));
    assert.deepEqual([runtime.layers(), runtime.entries()], [['far'], []]);
    // It may come later all the same.
    void answer([{ name: 'some', layer: { fields: { x: TEXT } } as unknown as RuntimeResource['layer'] }]);
    assert.equal(runtime.values.text('x'), '1');
    // In time it is not complained of; and nobody waits for one that is closed.
    const second = load();
    void answer([{ name: 'some', layer: null }]);
    await second;
    clock.turn(10_000);
    assert.equal(log.length, 1);
    void load();
    runtime.close();
    clock.turn(10_000);
    assert.deepEqual([isLoaded, log.length], [false, 1]);
  });
});
