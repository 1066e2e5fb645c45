import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RuntimeTexts } from '../../../../src/base/runtime.ts';
import type { RuntimeLayerSettings } from '../../../../src/config/index.ts';
import { Runtime } from '../../../../src/control-plane/runtime/runtime.ts';
import { listing, type StatsFixture, statsFixture } from '../../../support/stats.ts';

function layer(name: string, values: Record<string, string>): RuntimeLayerSettings {
  return { name, values: new Map(Object.entries(values)) };
}

interface Opened extends StatsFixture {
  readonly runtime: Runtime;
  readonly published: RuntimeTexts[];
}

function open(): Opened {
  const fixture = statsFixture();
  const published: RuntimeTexts[] = [];
  const runtime = new Runtime(fixture.store, { publishRuntime: (texts) => published.push(texts) });
  return { ...fixture, runtime, published };
}

describe('the runtime', () => {
  it('gives the value of the last layer that has one, under either spelling', () => {
    const { runtime } = open();
    runtime.load([
      layer('a', { 'envoy.x': '1', 'proxy.y': '2', z: '3' }),
      layer('b', { 'proxy.x': '10', 'envoy.y': '', z: 'many' }),
    ]);
    assert.deepEqual(
      ['proxy.x', 'proxy.y', 'z', 'w'].map((key) => runtime.values.integer(key)),
      [10, 2, undefined, undefined],
    );
  });

  it('sends the workers what holds in the end, each time that layers are loaded', () => {
    const { runtime, published } = open();
    const derived = runtime.values.derived((values) => values.integer('x'));
    const told: (number | undefined)[] = [];
    runtime.onChanged = () => told.push(derived.value);
    runtime.load([layer('a', { 'envoy.x': '1', x: '2' }), layer('b', { x: '3', y: '' })]);
    assert.equal(derived.value, 3);
    runtime.load([]);
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
    runtime.load([layer('a', { x: '1', y: '2' }), layer('b', { x: '3' })]);
    const shown = (await listing(store)).filter((line) => line.startsWith('runtime.'));
    const wanted = ['runtime.load_success: 1', 'runtime.num_keys: 2', 'runtime.num_layers: 2'];
    for (const line of wanted) assert.ok(shown.includes(line), shown.join('\n'));
  });
});
