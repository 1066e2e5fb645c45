// What the HTTP filter set_filter_state says of requests, and who reads it.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy, NamedUpstream } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';

const CONFIG = 'set_filter_state.v3.Config';
const INPUT = 'type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3.FilterStateInput';

const value = (object_key: string, text: string, fields: JsonObject = {}): JsonObject => ({
  object_key,
  format_string: { text_format_source: { inline_string: text } },
  ...fields,
});
const saying = (...on_request_headers: JsonObject[]): JsonObject => ({ on_request_headers });
const ofRoute = (...values: JsonObject[]): Record<string, JsonObject> => ({
  set_filter_state: typed(CONFIG, saying(...values)),
});
const onState = (key: string, text: string): JsonObject => ({
  filter_state: [{ key, string_match: { exact: text } }],
});

/** Answers say in a header what filter state holds at their end. */
const shown: JsonObject = {
  response_headers_to_add: ['own', 'later', 'fixed', 'of', 'wide'].map((key) => ({
    header: { key: `x-${key}`, value: `%FILTER_STATE(${key}:PLAIN)%` },
  })),
};

describe('the filter set_filter_state', () => {
  const upstreams: NamedUpstream[] = [];
  let proxy: Awaited<ReturnType<typeof createProxy>>;

  before(async () => {
    for (const name of ['web', 'a', 'b', 'c']) upstreams.push(await NamedUpstream.start(name));
    const own = filterOf(
      CONFIG,
      saying(
        value('own', '%REQ(x-own)%', { skip_if_empty: true }),
        value('later', '%FILTER_STATE(own:PLAIN)%+'),
        value('fixed', 'first', { read_only: true }),
        value('fixed', 'second'),
        value('of', 'filter'),
        value('wide', 'é'),
      ),
    );
    const choosing = filterOf(CONFIG, { ...saying(value('own', '%REQ(x-own)%')), clear_route_cache: true });
    const network = {
      name: 'set',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.filters.network.set_filter_state.v3.Config',
        on_new_connection: [value('own', 'connection'), value('fixed', 'connection', { read_only: true })],
      },
    };
    const direct = (prefix: string, body: string, match: JsonObject = {}): JsonObject => ({
      match: { prefix, ...match },
      direct_response: { status: 200, body: { inline_string: body } },
    });
    const choice = [direct('/', 'chosen', onState('own', 'x')), direct('/', 'other')];
    const matcher = {
      matcher_tree: {
        input: { name: 'state', typed_config: { '@type': INPUT, key: 'own' } },
        exact_match_map: {
          map: {
            é: {
              action: {
                name: 'route',
                typed_config: { '@type': 'type.googleapis.com/envoy.config.route.v3.Route', ...direct('/', 'by tree') },
              },
            },
          },
        },
      },
    };
    const hashed = {
      match: { prefix: '/hashed' },
      route: { cluster: 'ring', hash_policy: [{ filter_state: { key: 'own' } }] },
    };
    const drawn = {
      match: { prefix: '/drawn' },
      route: {
        weighted_clusters: {
          use_hash_policy: true,
          clusters: ['a', 'b', 'c'].map((name) => ({ name, weight: 1 })),
        },
        hash_policy: [{ filter_state: { key: 'own' } }],
      },
    };
    const said = routeTo('/said', ofRoute(value('of', 'route')));
    const again = routeTo('/again', {
      set_filter_state: typed(CONFIG, { ...saying(value('own', 'x')), clear_route_cache: true }),
    });
    const toChosen = { match: { prefix: '/again', ...onState('own', 'x') }, ...direct('/', 'chosen by the route') };
    const host = {
      ...shown,
      typed_per_filter_config: { 'envoy.filters.http.set_filter_state': typed(CONFIG, saying(value('of', 'host'))) },
    };
    const chained = (listener: JsonObject): JsonObject => {
      const { filter_chains } = listener as { filter_chains: { filters: JsonObject[] }[] };
      filter_chains[0]!.filters.unshift(network);
      return listener;
    };
    const listeners = [
      filteredListener(
        [own],
        [said, { ...toChosen, match: { prefix: '/again', ...onState('own', 'x') } }, again, hashed, routeTo('/')],
        { host },
      ),
      filteredListener([choosing], choice, { listener: { name: 'choosing' } }),
      filteredListener([filterOf(CONFIG, saying(value('own', '%REQ(x-own)%')))], choice, {
        listener: { name: 'late' },
      }),
      filteredListener([choosing], [], { listener: { name: 'tree' }, host: { matcher } }),
      filteredListener([choosing], [drawn], { listener: { name: 'drawn' } }),
      chained(filteredListener([own], [routeTo('/')], { listener: { name: 'chained' }, host: shown })),
    ];
    const [web, a, b, c] = upstreams;
    const ring = {
      name: 'ring',
      lb_policy: 'RING_HASH',
      load_assignment: {
        cluster_name: 'ring',
        endpoints: [
          {
            lb_endpoints: [a, b, c].map(({ port }: { port: number } = a!) => ({
              endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } } },
            })),
          },
        ],
      },
    };
    const clusters = [
      clusterAt('web', web!.port),
      clusterAt('a', a!.port),
      clusterAt('b', b!.port),
      clusterAt('c', c!.port),
      ring,
    ];
    proxy = await createProxy(bootstrapOf(listeners, clusters));
  });

  after(async () => {
    await proxy?.close();
    for (const upstream of upstreams) await upstream[Symbol.asyncDispose]();
  });

  async function ask(path: string, own = '', listener = 'main') {
    const { port } = proxy.listeners.get(listener)!;
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: own === '' ? {} : { 'x-own': own } });
    return { body: await response.text(), said: (name: string) => response.headers.get(`x-${name}`) };
  }

  it('says it in order, for formats of what follows', async () => {
    const { said } = await ask('/', 'me');
    assert.deepEqual(['own', 'later', 'fixed', 'wide'].map(said), ['me', 'me+', 'first', 'Ã©']);
    const nothing = await ask('/');
    assert.deepEqual(['own', 'later'].map(nothing.said), [null, '+']);
  });

  it('lets the route say more, the nearest last', async () => {
    assert.equal((await ask('/')).said('of'), 'host');
    assert.equal((await ask('/said')).said('of'), 'route');
  });

  it('has the route chosen again where it is told to, by itself or by the route', async () => {
    assert.equal((await ask('/', 'x', 'choosing')).body, 'chosen');
    assert.equal((await ask('/', 'y', 'choosing')).body, 'other');
    assert.equal((await ask('/', 'x', 'late')).body, 'other');
    assert.equal((await ask('/again')).body, 'chosen by the route');
    assert.equal((await ask('/', Buffer.from('é').toString('latin1'), 'tree')).body, 'by tree');
  });

  it('is what requests are hashed by', async () => {
    for (const [path, listener] of [
      ['/hashed', 'main'],
      ['/drawn', 'drawn'],
    ] as const) {
      const names = new Set<string>();
      for (let user = 0; user < 16; user += 1) {
        const { body } = await ask(path, `user-${user}`, listener);
        assert.equal((await ask(path, `user-${user}`, listener)).body, body, path);
        names.add(body);
      }
      assert.equal(names.size, 3, path);
    }
  });

  it('stands before what has been said of the connection, unless that was said once for all', async () => {
    const { said } = await ask('/', 'me', 'chained');
    assert.deepEqual(['own', 'fixed'].map(said), ['me', 'connection']);
    assert.equal((await ask('/', '', 'chained')).said('own'), 'connection');
  });
});
