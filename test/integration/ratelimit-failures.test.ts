// Services of rate limits that hang, lie or vanish: requests go on, or are turned away where that is said, and the proxy waits no
// longer and reads no more than it was told.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { FAILINGS, failingService, WELL } from '../support/failing-services.ts';
import { counts, OK, REPLIES, request } from '../support/guarded-proxy.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

/** A message whose overall_code is OK. */
const YES = Buffer.from([0, 0, 0, 0, 2, 0x08, 0x01]);
const TIMEOUT = '3s';
const MODES = [
  ['denies', { failure_mode_deny: true }],
  ['lets it go on', {}],
] as const;
const CASES = FAILINGS.grpc;

const named = (...words: readonly string[]): string => words.join(' ').replaceAll(/[ ,]+/g, '-');

describe('a service of rate limits', () => {
  const services: { close(): void }[] = [];
  let upstream: Awaited<ReturnType<typeof WireUpstream.answering>>;
  let proxy: Awaited<ReturnType<typeof createProxy>>;

  function listenersOf(what: string): readonly JsonObject[] {
    const timeout = what === WELL ? '60s' : TIMEOUT;
    const rate_limit_service = { grpc_service: { envoy_grpc: { cluster_name: what } }, transport_api_version: 'V3' };
    const route = { cluster: 'web', rate_limits: [{ actions: [{ generic_key: { descriptor_value: 'a' } }] }] };
    return MODES.map(([mode, fields]) => {
      const name = named(what, mode);
      const limits = { domain: 'shop', stat_prefix: name, timeout, rate_limit_service, ...fields };
      return filteredListener([filterOf('ratelimit.v3.RateLimit', limits)], [routeTo('/', {}, { route })], {
        listener: { name },
        manager: REPLIES,
      });
    });
  }

  before(async () => {
    upstream = await WireUpstream.answering(OK);
    const clusters: JsonObject[] = [clusterAt('web', upstream.port)];
    for (const what of CASES) {
      const service = await failingService('grpc', what, what, YES);
      services.push(service);
      clusters.push(service.cluster);
    }
    const listeners = CASES.flatMap(listenersOf);
    proxy = await createProxy(bootstrapOf(listeners, clusters, { stats_flush_on_admin: true }), { logLevel: 'off' });
  });

  after(async () => {
    await proxy?.close({ graceMs: 0 });
    await upstream?.close();
    for (const service of services) service.close();
  });

  for (const what of CASES) {
    const outcome = what === WELL ? 'lets the request go on' : 'lets the request go on, unless that is said otherwise';
    it(`that ${what} ${outcome}`, async () => {
      await Promise.all(
        MODES.map(async ([mode]) => {
          const name = named(what, mode);
          const client = new WireClient(proxy.listeners.get(name)!.port);
          const { status, body } = await client.write(request()).response();
          client.close();
          // Counters of clusters are named when they count first.
          const isCounted = async (expected: Record<string, number>): Promise<void> => {
            const found = async () => JSON.stringify(await counts(proxy, `cluster.web.ratelimit.${name}.`));
            await untilEqual(JSON.stringify(expected), found, 'what is counted');
          };
          if (what === WELL) {
            assert.equal(status, 200);
            await isCounted({ ok: 1 });
          } else if (mode === 'denies') {
            assert.deepEqual([status, body], [500, '|RLSE|rate_limiter_error']);
            await isCounted({ error: 1 });
          } else {
            assert.equal(status, 200);
            await isCounted({ error: 1, failure_mode_allowed: 1 });
          }
        }),
      );
    });
  }
});
