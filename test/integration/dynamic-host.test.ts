// The dynamic_forward_proxy filter where filter state names the hosts of requests, through the whole proxy.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo } from '../support/embedded-filters.ts';
import { OK } from '../support/guarded-proxy.ts';
import { field } from '../support/traced-proxy.ts';
import { unusedPort, WireClient, WireUpstream } from '../support/wire.ts';

const TYPES = 'type.googleapis.com/envoy.extensions';
const CACHE = { name: 'hosts', dns_lookup_family: 'V4_ONLY' };

function says(object_key: string, header: string): JsonObject {
  return {
    object_key,
    factory_key: 'envoy.string',
    skip_if_empty: true,
    format_string: { omit_empty_values: true, text_format_source: { inline_string: `%REQ(${header})%` } },
  };
}

async function started(
  t: TestContext,
  { allows, routes = [routeTo('/')] }: { allows: boolean; routes?: JsonObject[] },
) {
  const upstream = await WireUpstream.answering(OK);
  const filters = [
    filterOf('set_filter_state.v3.Config', {
      on_request_headers: [says('envoy.upstream.dynamic_host', 'x-to'), says('envoy.upstream.dynamic_port', 'x-port')],
    }),
    filterOf('dynamic_forward_proxy.v3.FilterConfig', {
      dns_cache_config: CACHE,
      allow_dynamic_host_from_filter_state: allows,
    }),
  ];
  const cluster = {
    name: 'web',
    lb_policy: 'CLUSTER_PROVIDED',
    cluster_type: {
      name: 'envoy.clusters.dynamic_forward_proxy',
      typed_config: {
        '@type': `${TYPES}.clusters.dynamic_forward_proxy.v3.ClusterConfig`,
        dns_cache_config: CACHE,
      },
    },
  };
  const proxy = await createProxy(bootstrapOf([filteredListener(filters, routes)], [cluster]));
  const client = new WireClient(proxy.listeners.get('main')!.port);
  t.after(async () => {
    client.close();
    await proxy.close();
    await upstream.close();
  });
  const get = async (...lines: string[]) => {
    client.write(`${['GET / HTTP/1.1', ...lines].join('\r\n')}\r\n\r\n`);
    return await client.response();
  };
  return { get, upstream };
}

test('a request goes to the host that filter state names, and keeps its own', async (t) => {
  const { get, upstream } = await started(t, { allows: true });
  const nowhere = `host: 127.0.0.1:${await unusedPort()}`;
  const { status } = await get(nowhere, 'x-to: 127.0.0.1', `x-port: ${upstream.port}`);
  assert.equal(status, 200);
  assert.equal(`host: ${field(upstream.heads[0]!, 'host')}`, nowhere);
  assert.equal((await get(nowhere, `x-to: 127.0.0.1:${upstream.port}`)).status, 200, 'with its port');
  assert.equal((await get(`host: 127.0.0.1:${upstream.port}`)).status, 200, 'where nothing is said');
  assert.equal((await get(nowhere)).status, 503);
  assert.equal((await get(`host: 127.0.0.1:${upstream.port}`, 'x-to: no host')).status, 503);
  assert.equal(upstream.heads.length, 3);
});

test('a route that rewrites the host still does so', async (t) => {
  const rewrites = {
    '@type': `${TYPES}.filters.http.dynamic_forward_proxy.v3.PerRouteConfig`,
    host_rewrite_literal: 'other.test',
  };
  const { get, upstream } = await started(t, {
    allows: true,
    routes: [routeTo('/', { dynamic_forward_proxy: rewrites })],
  });
  assert.equal((await get('host: a.test', `x-to: 127.0.0.1:${upstream.port}`)).status, 200);
  assert.equal(field(upstream.heads[0]!, 'host'), 'other.test');
});

test('filter state names no host where that is not allowed', async (t) => {
  const { get, upstream } = await started(t, { allows: false });
  const nowhere = `host: 127.0.0.1:${await unusedPort()}`;
  assert.equal((await get(nowhere, `x-to: 127.0.0.1:${upstream.port}`)).status, 503);
  assert.equal(upstream.heads.length, 0);
});
