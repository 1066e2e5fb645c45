// The network filter ratelimit through the whole proxy: what its service is asked, and what becomes of connections.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type JsonObject, tcpFilter } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { HTTP2 } from '../support/guarded-proxy.ts';
import { errorsOf, filter, logTo, named, running, V2, V3 } from '../support/network-filter-proxy.ts';
import { OVER_LIMIT, RateLimitService } from '../support/rate-limit-service.ts';

const TYPE = `${V3}.ratelimit.v3.RateLimit`;
const NAMES = ['total', 'ok', 'over_limit', 'error', 'failure_mode_allowed', 'cx_closed', 'active'];
const BY_ADDRESS = { entries: [{ key: 'client', value: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%' }] };

function serviceOf(generation: string, timeout = '5s'): JsonObject {
  return {
    timeout,
    rate_limit_service: {
      transport_api_version: generation.toUpperCase(),
      grpc_service: { envoy_grpc: { cluster_name: 'guard' } },
    },
  };
}

interface Options {
  readonly type?: string;
  readonly fields?: JsonObject;
  readonly runtime?: JsonObject;
}

/** A chain that is guarded by a service, before a TCP proxy. */
async function limited(t: TestContext, { type = TYPE, fields = {}, runtime }: Options = {}) {
  const service = await RateLimitService.start();
  t.after(async () => await service[Symbol.asyncDispose]());
  const web = await named(t, 'web');
  const log = logTo(
    t,
    '%RESPONSE_FLAGS% %CONNECTION_TERMINATION_DETAILS% %DYNAMIC_METADATA(envoy.filters.network.ratelimit:left)%',
  );
  const limit = filter(type, {
    stat_prefix: 'g',
    domain: 'doors',
    descriptors: [BY_ADDRESS],
    ...serviceOf('v3'),
    ...fields,
  });
  const bench = await running(t, [limit, tcpFilter({ access_log: log.access_log })], {
    clusters: { web: web.port, guard: service.port },
    clusterFields: { guard: HTTP2 },
    ...(runtime && { runtime }),
  });
  const counts = (): number[] => NAMES.map((name) => bench.stat(`ratelimit.g.${name}`));
  return { ...bench, service, web, counts, log };
}

for (const [generation, type] of [
  ['v3', TYPE],
  ['v2', `${V2}.rate_limit.v2.RateLimit`],
] as const) {
  test(`asks a service of ${generation} about each connection, and closes those beyond a limit`, async (t) => {
    const { client, service, web, counts, log, stat, proxy } = await limited(t, {
      type,
      fields: serviceOf(generation),
    });
    service.answer = { overall_code: 1, dynamic_metadata: { fields: { left: { string_value: 'three' } } } };
    const first = client('127.0.0.91').write('early');
    assert.equal(await first.until('web:early'), 'web:early');
    assert.equal(service.asked[0]!.path, `/envoy.service.ratelimit.${generation}.RateLimitService/ShouldRateLimit`);
    assert.deepEqual(service.last, {
      domain: 'doors',
      descriptors: [{ entries: [{ key: 'client', value: '127.0.0.91' }] }],
    });
    service.answer = OVER_LIMIT;
    assert.equal(await client().write('x').rest(), '');
    assert.deepEqual(counts(), [2, 1, 1, 0, 0, 1, 0]);
    assert.equal(web.sockets.length, 1);
    first.close();
    await untilEqual(0, () => stat('listener.main.downstream_cx_active'), 'connections');
    await proxy.close();
    assert.deepEqual(log.lines().toSorted(), ['- - three', 'RL ratelimit_close_over_limit -']);
  });
}

test('says limits and hits of its own, and several descriptors', async (t) => {
  const descriptors = [
    { ...BY_ADDRESS, limit: { requests_per_unit: 7, unit: 'MINUTE' }, hits_addend: 2 },
    {
      entries: [
        { key: 'port', value: 'a' },
        { key: 'all', value: '%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%!' },
      ],
    },
  ];
  const { client, service } = await limited(t, { fields: { descriptors } });
  await client().write('x').until('web:x');
  assert.deepEqual(service.last.descriptors, [
    {
      entries: [{ key: 'client', value: '127.0.0.1' }],
      limit: { requests_per_unit: 7, unit: 2 },
      hits_addend: { value: 2 },
    },
    {
      entries: [
        { key: 'port', value: 'a' },
        { key: 'all', value: '127.0.0.1!' },
      ],
    },
  ]);
});

for (const [name, failing] of [
  ['fails', { fails: 13 }],
  ['says what makes no sense', Buffer.from([0xff, 0xff, 0xff])],
  ['says nothing in time', 'silence'],
] as const) {
  test(`lets connections in when the service ${name}, unless that is to deny them`, async (t) => {
    for (const failure_mode_deny of [false, true]) {
      const fields = { failure_mode_deny, ...serviceOf('v3', name.endsWith('time') ? '0.05s' : '5s') };
      const { client, service, counts, log, proxy } = await limited(t, { fields });
      service.answer = failing;
      if (failure_mode_deny) {
        assert.equal(await client().write('x').rest(), '');
        assert.deepEqual(counts(), [1, 0, 0, 1, 0, 1, 0]);
        await proxy.close();
        assert.deepEqual(log.lines(), ['RL ratelimit_error -']);
      } else {
        assert.equal(await client().write('x').until('web:x'), 'web:x');
        assert.deepEqual(counts(), [1, 0, 0, 1, 1, 0, 0]);
      }
    }
  });
}

test('asks no longer about a client that leaves', async (t) => {
  const { client, service, counts } = await limited(t, { fields: serviceOf('v3', '60s') });
  service.answer = 'silence';
  const one = client().write('x');
  await untilEqual(1, () => service.asked.length, 'questions');
  assert.deepEqual(counts(), [1, 0, 0, 0, 0, 0, 1]);
  one.socket.resetAndDestroy();
  await untilEqual(1, () => service.over, 'questions that are over');
  assert.deepEqual(counts(), [1, 0, 0, 0, 0, 0, 0]);
});

test('the runtime turns it off, or has it count alone', async (t) => {
  const off = await limited(t, { runtime: { 'ratelimit.tcp_filter_enabled': 0 } });
  assert.equal(await off.client().write('x').until('web:x'), 'web:x');
  assert.deepEqual(off.counts(), [0, 0, 0, 0, 0, 0, 0]);
  const counting = await limited(t, { runtime: { 'ratelimit.tcp_filter_enforcing': 0 } });
  counting.service.answer = OVER_LIMIT;
  assert.equal(await counting.client().write('x').until('web:x'), 'web:x');
  assert.deepEqual(counting.counts(), [1, 0, 1, 0, 0, 0, 0]);
});

for (const [what, fields, fault] of [
  ['no service', { rate_limit_service: {} }, /rate_limit_service/],
  ['no descriptors', { descriptors: [] }, /descriptors/],
  [
    'an operator that there is not',
    { descriptors: [{ entries: [{ key: 'a', value: '%NOTHING%' }] }] },
    /entries\[0\]\.value: unknown command operator "NOTHING"/,
  ],
  [
    'hits beyond all bounds',
    { descriptors: [{ ...BY_ADDRESS, hits_addend: 2_000_000_000 }] },
    /hits_addend: 2000000000 exceeds the limit/,
  ],
] as const) {
  test(`is refused with ${what}`, () => {
    const limit = filter(TYPE, {
      stat_prefix: 'g',
      domain: 'doors',
      descriptors: [BY_ADDRESS],
      rate_limit_service: { grpc_service: { envoy_grpc: { cluster_name: 'web' } } },
      ...(fields as JsonObject),
    });
    assert.match(errorsOf(limit, tcpFilter({})).join('\n'), fault);
  });
}
