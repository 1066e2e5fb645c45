// Servers of keys that hang, lie or vanish: nobody is let in by keys that have not come, everybody who waits is told in time, and the
// proxy waits no longer and reads no more than it was told. Who has the next server is not touched.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { FAILINGS, failingService, WELL } from '../support/failing-services.ts';
import { counts, OK, REPLIES, request } from '../support/guarded-proxy.ts';
import { curveSigner, keySet, tokenOf } from '../support/tokens.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const SIGNER = curveSigner('ES256', 'one');
const TOKEN = tokenOf(SIGNER, { iss: 'me', exp: Math.floor(Date.now() / 1000) + 3600 });
const TIMEOUT = '3s';
const CASES = FAILINGS.http;
/** Of one worker, at the same time: they share what is asked. */
const CLIENTS = 3;

const named = (what: string): string => what.replaceAll(/[ ,]+/g, '-');

describe('a server of keys', () => {
  const services: { close(): void }[] = [];
  let upstream: Awaited<ReturnType<typeof WireUpstream.answering>>;
  let proxy: Awaited<ReturnType<typeof createProxy>>;

  function listenerOf(what: string): JsonObject {
    const name = named(what);
    const http_uri = { uri: 'http://keys/set', cluster: name, timeout: what === WELL ? '60s' : TIMEOUT };
    const fields = {
      providers: { a: { issuer: 'me', remote_jwks: { http_uri } } },
      rules: [{ match: { prefix: '/' }, requires: { provider_name: 'a' } }],
    };
    return filteredListener([filterOf('jwt_authn.v3.JwtAuthentication', fields)], [routeTo('/')], {
      listener: { name },
      manager: { stat_prefix: name, ...REPLIES },
    });
  }

  before(async () => {
    upstream = await WireUpstream.answering(OK);
    const clusters: JsonObject[] = [clusterAt('web', upstream.port)];
    for (const what of CASES) {
      const service = await failingService('http', what, named(what), keySet(SIGNER));
      services.push(service);
      clusters.push(service.cluster);
    }
    const bootstrap = bootstrapOf(CASES.map(listenerOf), clusters, { stats_flush_on_admin: true });
    proxy = await createProxy(bootstrap, { logLevel: 'off', concurrency: 1 });
  });

  after(async () => {
    await proxy?.close({ graceMs: 0 });
    await upstream?.close();
    for (const service of services) service.close();
  });

  for (const what of CASES) {
    it(`that ${what} ${what === WELL ? 'lets those in who have its tokens' : 'lets nobody in'}`, async () => {
      const { port } = proxy.listeners.get(named(what))!;
      const answers = await Promise.all(
        Array.from({ length: CLIENTS }, async () => {
          const client = new WireClient(port);
          const { status, body } = await client.write(request([`authorization: Bearer ${TOKEN}`])).response();
          client.close();
          return [status, body.split('|')[0]] as const;
        }),
      );
      const found = await counts(proxy, `http.${named(what)}.jwt_authn.`);
      if (what === WELL) {
        for (const [status] of answers) assert.equal(status, 200);
        assert.deepEqual([found.allowed, found.denied, found.jwks_fetch_failed], [CLIENTS, undefined, undefined]);
        return;
      }
      for (const answer of answers) assert.deepEqual(answer, [401, 'Jwks remote fetch is failed']);
      assert.deepEqual([found.allowed, found.denied], [undefined, CLIENTS]);
      assert.ok(
        found.jwks_fetch_failed! >= 1 && found.jwks_fetch_failed! <= CLIENTS,
        'those who wait share a question',
      );
    });
  }
});
