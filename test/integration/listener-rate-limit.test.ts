// The listener filter local_ratelimit: connections beyond a rate are closed before anything has been read of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  faultTexts,
  type JsonObject,
  listenerWith,
  load,
  mustLoad,
  tcpFilter,
  withListeners,
} from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { named, running } from '../support/network-filter-proxy.ts';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.listener.local_ratelimit.v3.LocalRateLimit';
const STAT = 'listener_local_ratelimit.l.rate_limited';

function limit(fields: JsonObject = {}, ofFilter: JsonObject = {}): JsonObject {
  const token_bucket = { max_tokens: 3, fill_interval: '3600s' };
  const typed_config = { '@type': TYPE, stat_prefix: 'l', token_bucket, ...fields };
  return { name: 'envoy.filters.listener.local_ratelimit', typed_config, ...ofFilter };
}

test('closes what is beyond the tokens that all workers share, wherever it stands', async (t) => {
  const web = await named(t, 'web');
  const inspector = { name: 'envoy.filters.listener.tls_inspector' };
  for (const listener_filters of [
    [limit(), inspector],
    [inspector, limit()],
  ]) {
    const { client, stat } = await running(t, [tcpFilter({})], {
      concurrency: 2,
      clusters: { web: web.port },
      listener: { listener_filters },
    });
    const open = Array.from({ length: 8 }, () => client().write('x'));
    const texts = await Promise.all(open.map(async (one) => await one.until('web:x').catch(() => '')));
    assert.equal(texts.filter((text) => text === 'web:x').length, 3);
    await untilEqual(5, () => stat(STAT), 'connections beyond the rate');
    assert.equal(stat('listener.main.downstream_cx_total'), 3);
    for (const one of open) one.close();
    await untilEqual(0, () => stat('listener.main.downstream_cx_active'), 'connections');
    await untilEqual(0, () => stat('listener.main.downstream_pre_cx_active'), 'connections before');
  }
});

test('asks the runtime whether it holds, and leaves alone whom filter_disabled names', async (t) => {
  const web = await named(t, 'web');
  const token_bucket = { max_tokens: 1, fill_interval: '3600s' };
  const runtime_enabled = { default_value: true, runtime_key: 'limit.on' };
  const off = await running(t, [tcpFilter({})], {
    clusters: { web: web.port },
    listener: { listener_filters: [limit({ token_bucket, runtime_enabled })] },
    runtime: { limit: { on: false } },
  });
  for (let turn = 0; turn < 3; turn += 1) assert.equal(await off.client().until('web:'), 'web:');
  const disabled = await running(t, [tcpFilter({})], {
    clusters: { web: web.port },
    listener: { listener_filters: [limit({ token_bucket }, { filter_disabled: { any_match: true } })] },
  });
  for (let turn = 0; turn < 3; turn += 1) assert.equal(await disabled.client().until('web:'), 'web:');
  assert.deepEqual([off.stat(STAT), disabled.stat(STAT)], [0, 0]);
});

test('places under the connection limits come back with connections that are closed', async (t) => {
  const web = await named(t, 'web');
  const { client, stat } = await running(t, [tcpFilter({})], {
    clusters: { web: web.port },
    listener: { listener_filters: [limit({ token_bucket: { max_tokens: 4, fill_interval: '3600s' } })] },
    runtime: { envoy: { resource_limits: { listener: { main: { connection_limit: 2 } } } } },
  });
  const kept = client();
  assert.equal(await kept.until('web:'), 'web:');
  for (let turn = 0; turn < 3; turn += 1) {
    const one = client();
    assert.equal(await one.until('web:'), 'web:');
    one.close();
    await untilEqual(1, () => stat('listener.main.downstream_cx_active'), 'connections');
  }
  for (let turn = 0; turn < 3; turn += 1)
    await client()
      .rest()
      .catch(() => '');
  await untilEqual(3, () => stat(STAT), 'connections beyond the rate');
  assert.equal(stat('listener.main.downstream_cx_overflow'), 0);
});

test('faults of its configuration are named', () => {
  const errorsOf = (fields: JsonObject): string[] =>
    faultTexts(load(withListeners(listenerWith([tcpFilter({})], { listener_filters: [limit(fields)] }))));
  const at = 'static_resources.listeners[0].listener_filters[0].typed_config';
  assert.deepEqual(errorsOf({}), []);
  assert.deepEqual(errorsOf({ token_bucket: { max_tokens: 1, fill_interval: '0.01s' } }), [
    `${at}.token_bucket.fill_interval: 10 ms is less than 50 ms`,
  ]);
  assert.match(errorsOf({ stat_prefix: '' })[0]!, /typed_config\.stat_prefix: .*/);
  assert.match(errorsOf({ token_bucket: null })[0]!, /typed_config\.token_bucket: .*/);
  assert.match(errorsOf({ share_key: 'a' })[0]!, /typed_config\.share_key/);
  const settings = limit({ token_bucket: { max_tokens: 2, tokens_per_fill: 3, fill_interval: '1s' } });
  const { listenerFilters } = mustLoad(withListeners(listenerWith([tcpFilter({})], { listener_filters: [settings] })))
    .listeners[0]!;
  const [own] = listenerFilters;
  assert.ok(own?.kind === 'local-rate-limit');
  const { maxTokens, tokensPerFill, fillIntervalMs } = own.bucket;
  assert.deepEqual([own.statPrefix, maxTokens, tokensPerFill, fillIntervalMs], ['l', 2, 3, 1000]);
  assert.equal(own.enabled.default, true);
});
