// Services that filters ask about requests, and ask again when they fail: as often as is said, for what is said, and within the
// time of the question.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { AuthorizationService } from '../support/authorization-service.ts';
import { type JsonObject, managerFaults, ROUTER } from '../support/bootstrap.ts';
import { filterOf } from '../support/embedded-filters.ts';
import { benchFor, counts, EXT_AUTHZ, guardFor, HTTP_SERVICE, HTTP2, request } from '../support/guarded-proxy.ts';

const SOON = { base_interval: '0.001s' };
const GUARD = 'cluster.guard.';
const GRPC: JsonObject = { transport_api_version: 'V3' };

/** A service whose first answers are of this status. */
async function failing(t: TestContext, times: number, status = 503) {
  const guard = await guardFor(t);
  guard.answer = (response) => response.writeHead(guard.told.length <= times ? status : 200).end();
  return guard;
}

describe('a service of HTTP', () => {
  const service = (retry_policy?: JsonObject): JsonObject => ({
    http_service: { ...HTTP_SERVICE, ...(retry_policy === undefined ? {} : { retry_policy }) },
  });

  test('is asked again as often as is said, with the same question', async (t) => {
    const guard = await failing(t, 2);
    const fields = {
      ...service({ num_retries: 2, retry_back_off: SOON }),
      with_request_body: { max_request_bytes: 100 },
    };
    const { client, proxy } = await benchFor(t, guard.port, fields);
    assert.equal((await client.write(request([], '/a', 'body', 'POST')).response()).status, 200);
    assert.deepEqual(
      guard.told.map(({ method, body }) => `${method} ${body}`),
      ['POST body', 'POST body', 'POST body'],
    );
    const { upstream_rq_retry, upstream_rq_retry_success } = await counts(proxy, GUARD);
    assert.deepEqual([upstream_rq_retry, upstream_rq_retry_success], [2, 1]);
  });

  test('turns away when it fails once more than that, and at once without a policy', async (t) => {
    for (const [policy, asked] of [
      [{ retry_back_off: SOON }, 2],
      [undefined, 1],
    ] as const) {
      const guard = await failing(t, 2);
      const { client } = await benchFor(t, guard.port, service(policy));
      assert.equal((await client.write(request()).response()).status, 403);
      assert.equal(guard.told.length, asked);
    }
  });

  test('is asked again for what is named', async (t) => {
    for (const [retry_on, status, asked] of [
      ['gateway-error', 500, 1],
      ['gateway-error', 502, 2],
      ['retriable-4xx', 409, 2],
      ['', 429, 1],
    ] as const) {
      const guard = await failing(t, 1, status);
      const { client } = await benchFor(t, guard.port, service({ retry_on, retry_back_off: SOON }));
      await client.write(request()).response();
      assert.equal(guard.told.length, asked, `${retry_on} ${status}`);
    }
  });

  test('is waited for no longer than without a policy', async (t) => {
    const guard = await failing(t, 1000);
    const http_service = {
      server_uri: { uri: 'http://guard', cluster: 'guard', timeout: '0.2s' },
      retry_policy: { num_retries: 1000, retry_back_off: { base_interval: '0.05s', max_interval: '0.05s' } },
    };
    const { client, proxy } = await benchFor(t, guard.port, { http_service });
    assert.equal((await client.write(request()).response()).status, 403);
    // Of the thousand that it would be asked.
    assert.ok(guard.told.length < 100);
    assert.deepEqual(await counts(proxy), { error: 1 });
  });
});

describe('a service of gRPC', () => {
  test('is asked again when it is not there', async (t) => {
    for (const [retry_policy, status, asked] of [
      [{ retry_back_off: SOON }, 200, 2],
      [{ retry_back_off: SOON, retry_on: 'cancelled' }, 403, 1],
    ] as const) {
      const service = await AuthorizationService.start();
      t.after(() => service[Symbol.asyncDispose]());
      const grpc_service = { envoy_grpc: { cluster_name: 'guard', retry_policy }, timeout: '10s' };
      const { client } = await benchFor(t, service.port, { ...GRPC, grpc_service }, { guard: HTTP2 });
      service.first.push({ fails: 14 });
      assert.equal((await client.write(request()).response()).status, status);
      assert.equal(service.asked.length, asked);
    }
  });
});

describe('a policy is refused', () => {
  const errors = (http_service: JsonObject): string =>
    managerFaults({ http_filters: [filterOf(EXT_AUTHZ, { http_service }), ROUTER] }).join('\n');

  test('that names hosts, or waits that grow backwards', () => {
    const http_service = { server_uri: { uri: 'http://a', cluster: 'web', timeout: '1s' } };
    const predicate = { name: 'envoy.retry_host_predicates.previous_hosts' };
    assert.match(
      errors({ ...http_service, retry_policy: { retry_host_predicate: [predicate] } }),
      /retry_host_predicate/,
    );
    const retry_back_off = { base_interval: '2s', max_interval: '1s' };
    assert.match(errors({ ...http_service, retry_policy: { retry_back_off } }), /retry_back_off\.max_interval/);
  });
});
