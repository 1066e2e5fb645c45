import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RuntimeLayerSettings } from '../../../src/config/index.ts';
import { Runtime } from '../../../src/control-plane/runtime/runtime.ts';
import { listing, statsFixture } from '../../support/stats.ts';

function layer(name: string, values: Record<string, string>): RuntimeLayerSettings {
  return { name, values: new Map(Object.entries(values)) };
}

describe('the runtime', () => {
  it('gives the value of the last layer that has one, under either spelling', () => {
    const layers = [
      layer('a', { 'envoy.x': '1', 'proxy.y': '2', z: '3' }),
      layer('b', { 'proxy.x': '10', 'envoy.y': '', z: 'many' }),
    ];
    const runtime = new Runtime(layers, statsFixture().store);
    assert.deepEqual(
      ['proxy.x', 'proxy.y', 'z', 'w'].map((key) => runtime.integer(key)),
      [10, 2, undefined, undefined],
    );
  });

  it('counts its layers and their keys', async () => {
    const { store } = statsFixture();
    new Runtime([layer('a', { x: '1', y: '2' }), layer('b', { x: '3' })], store);
    const shown = (await listing(store)).filter((line) => line.startsWith('runtime.'));
    const wanted = ['runtime.load_success: 1', 'runtime.num_keys: 2', 'runtime.num_layers: 2'];
    for (const line of wanted) assert.ok(shown.includes(line), shown.join('\n'));
  });
});
