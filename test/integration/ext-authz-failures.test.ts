// Services that are asked about requests and hang, lie or vanish: requests are turned away, or go on where that is said, and the proxy waits
// no longer and reads no more than it was told.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { FAILINGS, failingService, WELL } from '../support/failing-services.ts';
import { counts, EXT_AUTHZ, OK, REPLIES, request } from '../support/guarded-proxy.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

/** An answer that says yes: nothing over HTTP, an empty message of gRPC. */
const YES = { http: '', grpc: Buffer.alloc(5) };

/** What hangs costs as much. */
const TIMEOUT = '3s';
const MODES = [
  ['denies', {}],
  ['lets it go on', { failure_mode_allow: true }],
] as const;

const CASES = (['http', 'grpc'] as const).flatMap((protocol) =>
  FAILINGS[protocol].map((what) => [protocol, what] as const),
);

/** As control planes name clusters: a name that is no host, for calls that name nobody else. */
const clusterOf = (protocol: string, what: string): string => `outbound|80|${protocol}|${what}`;
const named = (...words: readonly string[]): string => words.join(' ').replaceAll(/[ ,]+/g, '-');

describe('a service that is asked about requests', () => {
  const services: { close(): unknown }[] = [];
  let upstream: Awaited<ReturnType<typeof WireUpstream.answering>>;
  let proxy: Awaited<ReturnType<typeof createProxy>>;

  function listenersOf(protocol: string, what: string): readonly JsonObject[] {
    const cluster = clusterOf(protocol, what);
    const timeout = what === WELL ? '60s' : TIMEOUT;
    const service: JsonObject =
      protocol === 'http'
        ? { http_service: { server_uri: { uri: 'http://guard', cluster, timeout } } }
        : { grpc_service: { envoy_grpc: { cluster_name: cluster }, timeout }, transport_api_version: 'V3' };
    return MODES.map(([mode, fields]) => {
      const name = named(protocol, what, mode);
      return filteredListener([filterOf(EXT_AUTHZ, { ...service, ...fields })], [routeTo('/')], {
        listener: { name },
        manager: { stat_prefix: name, ...REPLIES },
      });
    });
  }

  before(async () => {
    upstream = await WireUpstream.answering(OK);
    const clusters: JsonObject[] = [clusterAt('web', upstream.port)];
    const listeners: JsonObject[] = [];
    for (const [protocol, what] of CASES) {
      const service = await failingService(protocol, what, clusterOf(protocol, what), YES[protocol]);
      services.push(service);
      clusters.push(service.cluster);
      listeners.push(...listenersOf(protocol, what));
    }
    proxy = await createProxy(bootstrapOf(listeners, clusters, { stats_flush_on_admin: true }), { logLevel: 'off' });
  });

  after(async () => {
    await proxy?.close({ graceMs: 0 });
    await upstream?.close();
    for (const service of services) service.close();
  });

  for (const [protocol, what] of CASES) {
    const outcome =
      what === WELL ? 'lets the request go on' : 'has the request turned away, or go on where that is said';
    it(`over ${protocol} and ${what} ${outcome}`, async () => {
      await Promise.all(
        MODES.map(async ([mode]) => {
          const name = named(protocol, what, mode);
          const client = new WireClient(proxy.listeners.get(name)!.port);
          const { status, body } = await client.write(request()).response();
          client.close();
          const found = await counts(proxy, `http.${name}.ext_authz.`);
          if (what === WELL) {
            assert.equal(status, 200);
            assert.deepEqual(found, { ok: 1 });
          } else if (mode === 'denies') {
            assert.deepEqual([status, body], [403, '|UAEX|ext_authz_error']);
            assert.deepEqual(found, { error: 1 });
          } else {
            assert.equal(status, 200);
            assert.deepEqual(found, { error: 1, failure_mode_allowed: 1 });
          }
        }),
      );
    });
  }
});
