import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faultTexts, type JsonObject, load, mustLoad } from '../../../../support/bootstrap.ts';

const TYPE = 'type.googleapis.com/envoy.config.metrics.v3.HystrixSink';

function sink(fields: JsonObject = {}): JsonObject {
  return { name: 'envoy.stat_sinks.hystrix', typed_config: { '@type': TYPE, ...fields } };
}

function bucketsOf(bootstrap: JsonObject): unknown {
  const { statSinks } = mustLoad(bootstrap);
  assert.ok(statSinks.every(({ name }) => name === 'stat_sinks.hystrix'));
  return (statSinks[0]?.settings as { readonly buckets: number } | undefined)?.buckets;
}

test('the hystrix sink says over how many flushes counters are compared', () => {
  const buckets = (...sinks: JsonObject[]) => bucketsOf({ stats_sinks: sinks });
  assert.equal(buckets(), undefined);
  assert.equal(buckets(sink({ num_buckets: 7 })), 7);
  assert.equal(buckets(sink({ num_buckets: 1000 })), 1000);
  assert.equal(buckets(sink()), 10);
  assert.equal(buckets({ name: 'envoy.stat_sinks.hystrix' }), 10);
});

test('a hystrix sink of the older generation is read', () => {
  const older = { '@type': 'type.googleapis.com/envoy.config.metrics.v2.HystrixSink', num_buckets: 3 };
  assert.equal(bucketsOf({ stats_sinks: [{ name: 'envoy.stat_sinks.hystrix', typed_config: older }] }), 3);
});

test('a window of an impossible length is refused, and so is a second stream', () => {
  const errors = (...sinks: JsonObject[]) => faultTexts(load({ stats_sinks: sinks }));
  const at = 'stats_sinks[0].typed_config.num_buckets';
  assert.deepEqual(errors(sink({ num_buckets: -1 })), [`${at}: -1 is not within 0 to 1000`]);
  assert.deepEqual(errors(sink({ num_buckets: 1001 })), [`${at}: 1001 is not within 0 to 1000`]);
  assert.deepEqual(errors(sink(), sink()), [
    'stats_sinks[1]: is a second sink of its kind; there is one path that its events have',
  ]);
});
