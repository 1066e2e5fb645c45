// HTTP filters that decision trees pass over, in the real program.

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import {
  clusterNamed,
  faultTexts,
  httpFilter,
  type JsonObject,
  listenerWith,
  load,
  ROUTER,
  socketAddress,
  withListeners,
} from '../support/bootstrap.ts';
import { startEchoUpstream } from '../support/echo-upstream.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient } from '../support/wire.ts';

const PREFIX = 'type.googleapis.com/envoy.extensions';
const FILTERS = `${PREFIX}.filters.http`;
const MATCHING = `${PREFIX}.common.matching.v3`;

const SKIP: JsonObject = {
  name: 'skip',
  typed_config: { '@type': `${PREFIX}.filters.common.matcher.action.v3.SkipFilter` },
};

/** Leads to what is passed over for requests with this header. */
function skipsWith(header: string, value = 'yes'): JsonObject {
  const input = {
    name: 'header',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput',
      header_name: header,
    },
  };
  return { matcher_tree: { input, exact_match_map: { map: { [value]: { action: SKIP } } } } };
}

function delegate(name: string, typed_config: JsonObject, xds_matcher?: JsonObject): JsonObject {
  const extension_config = { name: 'inner', typed_config };
  const own = { '@type': `${MATCHING}.ExtensionWithMatcher`, extension_config, ...(xds_matcher && { xds_matcher }) };
  return { name, typed_config: own };
}

const mutation = (key: string): JsonObject => ({
  '@type': `${FILTERS}.header_mutation.v3.HeaderMutation`,
  mutations: {
    request_mutations: [{ append: { header: { key, value: 'yes' } } }],
    response_mutations: [{ append: { header: { key: `${key}-response`, value: 'yes' } } }],
  },
});

const FAULT: JsonObject = {
  '@type': `${FILTERS}.fault.v3.HTTPFault`,
  abort: { http_status: 418, percentage: { numerator: 100 } },
};

function bootstrapWith(port: number, http_filters: readonly JsonObject[], route: JsonObject = {}): JsonObject {
  const lb_endpoints = [{ endpoint: { address: socketAddress('127.0.0.1', port) } }];
  const routes = [
    { match: { prefix: '/own' }, route: { cluster: 'web' }, ...route },
    { match: { prefix: '/' }, route: { cluster: 'web' } },
  ];
  const route_config = { virtual_hosts: [{ name: 'v', domains: ['*'], routes }] };
  const manager = httpFilter({ route_config, http_filters: [...http_filters, ROUTER] });
  const listeners = withListeners(listenerWith([manager], { name: 'in', address: socketAddress('127.0.0.1', 0) }));
  const { static_resources } = listeners as { static_resources: JsonObject };
  const web = clusterNamed('web', { load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints }] } });
  const admin = { address: socketAddress('127.0.0.1', 0) };
  return { ...listeners, admin, static_resources: { ...static_resources, clusters: [web] } };
}

type Ask = (head: string, body?: string) => Promise<{ head: string; body: string; status: number }>;

/** @param head lines behind that of the request. */
async function asking(t: TestContext, filters: readonly JsonObject[], route?: JsonObject): Promise<Ask> {
  const upstream = await startEchoUpstream('web');
  t.after(() => upstream[Symbol.asyncDispose]());
  const weir = await startWeir({ configYaml: JSON.stringify(bootstrapWith(upstream.port, filters, route)) });
  t.after(() => weir.stop());
  const client = new WireClient((await weir.listeners()).get('in')!.port);
  return (head, body = '') => client.write(`${head}host: x\r\n\r\n${body}`).response();
}

describe('a filter beside a decision tree', () => {
  it('is passed over where the tree leads to that, and takes part elsewhere', async (t) => {
    const ask = await asking(t, [delegate('late', FAULT, skipsWith('pass'))]);
    assert.equal((await ask('GET / HTTP/1.1\r\n')).status, 418);
    assert.equal((await ask('GET / HTTP/1.1\r\npass: yes\r\n')).status, 200);
    assert.equal((await ask('GET / HTTP/1.1\r\npass: no\r\n')).status, 418);
  });

  it('has its tree in the older field as well, which the newer one goes before', async (t) => {
    const late = delegate('late', FAULT);
    const older = { ...late, typed_config: { ...(late.typed_config as JsonObject), matcher: skipsWith('pass') } };
    const both = delegate('late', FAULT, skipsWith('newer'));
    const newer = { ...both, typed_config: { ...(both.typed_config as JsonObject), matcher: skipsWith('pass') } };
    const ask = await asking(t, [older]);
    assert.equal((await ask('GET / HTTP/1.1\r\n')).status, 418);
    assert.equal((await ask('GET / HTTP/1.1\r\npass: yes\r\n')).status, 200);
    const askBoth = await asking(t, [newer]);
    assert.equal((await askBoth('GET / HTTP/1.1\r\npass: yes\r\n')).status, 418);
    assert.equal((await askBoth('GET / HTTP/1.1\r\nnewer: yes\r\n')).status, 200);
  });

  it('is passed over by what filters before it have said, on the way back as well', async (t) => {
    const first = { name: 'first', typed_config: mutation('one') };
    const ask = await asking(t, [first, delegate('late', mutation('two'), skipsWith('one'))]);
    const { status, head } = await ask('GET / HTTP/1.1\r\n');
    assert.equal(status, 200);
    assert.match(head, /one-response: yes/);
    assert.doesNotMatch(head, /two-response/);
  });

  it('takes part in all requests without a tree', async (t) => {
    const ask = await asking(t, [delegate('late', mutation('two'))]);
    assert.match((await ask('GET / HTTP/1.1\r\n')).head, /two-response: yes/);
  });

  it('has another tree where a route says so', async (t) => {
    const typed_per_filter_config = {
      late: { '@type': `${MATCHING}.ExtensionWithMatcherPerRoute`, xds_matcher: skipsWith('own') },
    };
    const ask = await asking(t, [delegate('late', FAULT, skipsWith('pass'))], { typed_per_filter_config });
    assert.equal((await ask('GET /own HTTP/1.1\r\npass: yes\r\n')).status, 418);
    assert.equal((await ask('GET /own HTTP/1.1\r\nown: yes\r\n')).status, 200);
    assert.equal((await ask('GET / HTTP/1.1\r\nown: yes\r\n')).status, 418);
  });

  it('leaves bodies of both directions as they are where it is passed over', async (t) => {
    const buffer = { '@type': `${FILTERS}.buffer.v3.Buffer`, max_request_bytes: 4 };
    const compressor = {
      '@type': `${FILTERS}.compressor.v3.Compressor`,
      compressor_library: {
        name: 'gzip',
        typed_config: { '@type': `${PREFIX}.compression.gzip.compressor.v3.Gzip` },
      },
      response_direction_config: { common_config: { min_content_length: 1 } },
    };
    const filters = [delegate('buffer', buffer, skipsWith('pass')), delegate('gzip', compressor, skipsWith('pass'))];
    const ask = await asking(t, filters);
    const post = 'POST / HTTP/1.1\r\naccept-encoding: gzip\r\ncontent-length: 10\r\n';
    const passed = await ask(`${post}pass: yes\r\n`, '0123456789');
    assert.equal(passed.status, 200);
    assert.match(passed.body, /"bodyBytes":10/);
    assert.doesNotMatch(passed.head, /content-encoding/);
    const { status, head } = await ask(post, '0123456789');
    assert.equal(status, 413);
    assert.doesNotMatch(head, /content-encoding: br/);
  });

  it('is refused with what is no filter, or no tree of this kind', () => {
    const errors = (...filters: readonly JsonObject[]): string =>
      faultTexts(load(bootstrapWith(1, filters))).join('\n');
    assert.match(errors(delegate('x', ROUTER.typed_config as JsonObject)), /extension_config\S*: .*is not supported/);
    assert.match(
      errors({ name: 'x', typed_config: { '@type': `${MATCHING}.ExtensionWithMatcher` } }),
      /extension_config/,
    );
    const allow = {
      name: 'allow',
      typed_config: { '@type': 'type.googleapis.com/envoy.config.rbac.v3.Action', name: 'a', action: 'ALLOW' },
    };
    const tree = { on_no_match: { action: allow } };
    assert.match(errors(delegate('x', FAULT, tree)), /on_no_match\.action\S*: has to be a SkipFilter/);
    assert.match(errors(delegate('x', { ...FAULT, abort: { http_status: 42 } })), /http_status/);
    assert.equal(errors(delegate('x', FAULT, skipsWith('a'))), '');
  });
});
