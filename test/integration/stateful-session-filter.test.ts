// Sessions that keep to their host, through the whole proxy: by cookie and by header, with every balancer and protocol, and what
// becomes of those whose host is away.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { type JsonObject, socketAddress } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { bootstrapOf, createProxy } from '../support/embedded.ts';
import { filteredListener, filterOf, routeTo, typed } from '../support/embedded-filters.ts';
import { untilEqual } from '../support/eventually.ts';
import { WireClient } from '../support/wire.ts';

const STATES = 'type.googleapis.com/envoy.extensions.http.stateful_session';
const TYPE = 'stateful_session.v3.StatefulSession';
const POLICIES = ['ROUND_ROBIN', 'LEAST_REQUEST', 'RANDOM', 'RING_HASH', 'MAGLEV'];
const HOUR = 3600;

const cookieState = (cookie: JsonObject): JsonObject => ({
  name: 'envoy.http.stateful_session.cookie',
  typed_config: { '@type': `${STATES}.cookie.v3.CookieBasedSessionState`, cookie },
});
const headerState = (name: string): JsonObject => ({
  name: 'envoy.http.stateful_session.header',
  typed_config: { '@type': `${STATES}.header.v3.HeaderBasedSessionState`, name },
});
const envelopeState = (name: string): JsonObject => ({
  name: 'envoy.http.stateful_session.envelope',
  typed_config: { '@type': `${STATES}.envelope.v3.EnvelopeSessionState`, header: { name } },
});
const sessionOnRoute = (fields: JsonObject): Record<string, JsonObject> => ({
  stateful_session: typed('stateful_session.v3.StatefulSessionPerRoute', fields),
});

/** A route to a cluster, with a session of its own or without. */
function to(cluster: string, prefix = `/${cluster}/`, fields: JsonObject = {}, said: Record<string, JsonObject> = {}) {
  return routeTo(prefix, said, { route: { cluster, ...fields } });
}

function clusterOf(
  name: string,
  ports: readonly number[],
  fields: JsonObject = {},
  statuses: JsonObject = {},
): JsonObject {
  const lb_endpoints = ports.map((port, index) => ({
    endpoint: { address: socketAddress('127.0.0.1', port) },
    ...(statuses[index] === undefined ? {} : { health_status: statuses[index] }),
  }));
  return { name, load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints }] }, ...fields };
}

const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64');

/** As the filter and others write cookies: a message of the address and of the time when it ends. */
function cookieValue(address: string, expires = 0): string {
  const bytes = [0x0a, address.length, ...Buffer.from(address)];
  if (expires > 0) {
    bytes.push(0x10);
    for (let rest = expires; rest > 0; rest = Math.floor(rest / 128))
      bytes.push((rest % 128) | (rest >= 128 ? 0x80 : 0));
  }
  return Buffer.from(bytes).toString('base64');
}

describe('the stateful_session filter', () => {
  const servers: Server[] = [];
  const secured: ReturnType<typeof createSecureServer>[] = [];
  const folder = new CertificateFolder();
  let proxy: Awaited<ReturnType<typeof createProxy>>;
  let ports: number[];
  let securePorts: number[];

  before(async () => {
    const { certificate, key } = await folder.make('upstream', { altNames: 'DNS:upstream.example' });
    for (let index = 0; index < 4; index += 1) {
      const server = createServer((request, response) => {
        if (request.url!.includes('fail')) response.statusCode = 503;
        const { 'mcp-session-id': named } = request.headers;
        if (request.url!.includes('named')) response.setHeader('mcp-session-id', named ?? `made by ${index}; "~"`);
        if (request.url!.includes('twice')) response.setHeader('mcp-session-id', ['a', 'b']);
        if (named !== undefined) response.setHeader('x-got', named);
        if (request.url!.includes('moved'))
          response.writeHead(302, { location: `http://${request.headers.host}/next/` });
        response.end(String(index));
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      servers.push(server);
      const secure = createSecureServer({ cert: certificate, key }, (_request, response) =>
        response.end(String(index)),
      );
      await once(secure.listen(0, '127.0.0.1'), 'listening');
      secured.push(secure);
    }
    const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
    ports = servers.map(portOf);
    securePorts = secured.map(portOf);
    const http2 = {
      typed_extension_protocol_options: {
        'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
          '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
          explicit_http_config: { http2_protocol_options: {} },
        },
      },
      transport_socket: {
        name: 'envoy.transport_sockets.tls',
        typed_config: { '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext' },
      },
    };
    const statuses = { 0: 'HEALTHY', 1: 'DEGRADED', 2: 'DRAINING', 3: 'TIMEOUT' };
    const clusters = [
      ...POLICIES.map((lb_policy) => clusterOf(lb_policy, ports, { lb_policy })),
      clusterOf('h2', securePorts, http2),
      clusterOf('health', ports, {}, statuses),
      clusterOf(
        'draining',
        ports,
        { common_lb_config: { override_host_status: { statuses: ['DRAINING'] } } },
        statuses,
      ),
      clusterOf('nobody', ports, { common_lb_config: { override_host_status: {} } }),
      {
        name: 'named',
        type: 'ORIGINAL_DST',
        lb_policy: 'CLUSTER_PROVIDED',
        original_dst_lb_config: { use_http_header: true },
      },
      clusterOf('web', ports),
      clusterOf('next', ports.slice(0, 1)),
    ];
    const cookie = cookieState({
      name: 'sid',
      path: '/',
      ttl: `${HOUR}s`,
      attributes: [{ name: 'SameSite', value: 'Lax' }],
    });
    const cookieRoutes = [
      ...POLICIES.map((policy) => to(policy)),
      to('h2'),
      to('health'),
      to('draining'),
      to('nobody'),
      to('named'),
      to('web', '/retried/', {
        retry_policy: {
          retry_on: '5xx',
          num_retries: 1,
          retry_host_predicate: [{ name: 'envoy.retry_host_predicates.previous_hosts' }],
          host_selection_retry_max_attempts: 20,
        },
      }),
      to('next'),
      to(
        'web',
        '/moved/',
        { internal_redirect_policy: {} },
        sessionOnRoute({ stateful_session: { session_state: headerState('x-host'), strict: true } }),
      ),
      to('web', '/off/', {}, sessionOnRoute({ disabled: true })),
      to(
        'web',
        '/envelope/',
        {},
        sessionOnRoute({ stateful_session: { session_state: envelopeState('Mcp-Session-Id') } }),
      ),
      to(
        'web',
        '/strict/',
        {},
        sessionOnRoute({ stateful_session: { session_state: headerState('x-host'), strict: true } }),
      ),
      ...[true, false].map((strict) =>
        to(
          'web',
          `/missing-${strict}/`,
          {},
          sessionOnRoute({
            stateful_session: {
              session_state: headerState('x-host'),
              strict,
              status_on_strict_destination_not_found: 404,
            },
          }),
        ),
      ),
      to(
        'nobody',
        '/strict-nobody/',
        {},
        sessionOnRoute({ stateful_session: { session_state: headerState('x-host'), strict: true } }),
      ),
      to(
        'web',
        '/under/path',
        {},
        sessionOnRoute({ stateful_session: { session_state: cookieState({ name: 'under', path: '/under/path' }) } }),
      ),
      to('web', '/'),
    ];
    const listeners = [
      filteredListener([filterOf(TYPE, { session_state: cookie, stat_prefix: 'cookies' })], cookieRoutes, {
        listener: { name: 'cookie' },
      }),
      filteredListener(
        [filterOf(TYPE, { session_state: headerState('X-Session'), strict: true, stat_prefix: 'strict' })],
        [routeTo('/direct', {}, { direct_response: { status: 200 }, route: null }), to('web', '/')],
        {
          listener: { name: 'header' },
          manager: { stat_prefix: 'header' },
        },
      ),
      filteredListener([filterOf(TYPE)], [to('web', '/')], { listener: { name: 'none' } }),
      filteredListener(
        [filterOf(TYPE, { session_state: cookie })],
        [
          routeTo(
            '/',
            {},
            {
              match: { connect_matcher: {} },
              route: { cluster: 'web', upgrade_configs: [{ upgrade_type: 'CONNECT', connect_config: {} }] },
            },
          ),
        ],
        { listener: { name: 'connect' }, manager: { upgrade_configs: [{ upgrade_type: 'CONNECT' }] } },
      ),
    ];
    proxy = await createProxy(bootstrapOf(listeners, clusters, { stats_flush_on_admin: true }), { concurrency: 2 });
  });

  after(async () => {
    await proxy?.close();
    for (const server of servers) server.closeAllConnections();
    for (const server of [...servers, ...secured]) server.close();
    folder[Symbol.dispose]();
  });

  async function ask(listener: string, path: string, fields: Readonly<Record<string, string>> = {}) {
    const url = `http://127.0.0.1:${proxy.listeners.get(listener)!.port}${path}`;
    const response = await fetch(url, { headers: { connection: 'close', ...fields } });
    return { status: response.status, body: await response.text(), headers: response.headers };
  }

  /** Answers of some requests with these fields, in ascending order. */
  async function answers(listener: string, path: string, fields: Readonly<Record<string, string>>): Promise<string> {
    const bodies = new Set<string>();
    for (let times = 0; times < 8; times += 1) {
      const { status, body } = await ask(listener, path, fields);
      bodies.add(status === 200 ? body : String(status));
    }
    return [...bodies].sort().join();
  }

  const addressOf = (port: number | undefined): string => `127.0.0.1:${port}`;
  const stat = (name: string): number => proxy.stats.value(`http.${name}`) ?? 0;

  for (const path of [...POLICIES, 'h2']) {
    it(`keeps a session by cookie at its host: ${path}`, async () => {
      const all = path === 'h2' ? securePorts : ports;
      const first = await ask('cookie', `/${path}/`);
      const [said = ''] = first.headers.getSetCookie();
      const [pair = '', ...attributes] = said.split('; ');
      assert.deepEqual(attributes, ['Max-Age=3600', 'Path=/', 'SameSite=Lax', 'HttpOnly']);
      const [, value = ''] = /^sid="([^"]+)"$/.exec(pair) ?? [];
      const bytes = Buffer.from(value, 'base64');
      const address = addressOf(all[Number(first.body)]);
      assert.deepEqual(
        bytes.subarray(0, 2 + address.length),
        Buffer.from([10, address.length, ...Buffer.from(address)]),
      );
      for (const [index, port] of all.entries()) {
        const session = { cookie: `a=b; sid="${cookieValue(addressOf(port))}"` };
        assert.equal(await answers('cookie', `/${path}/`, session), String(index));
      }
      const again = await ask('cookie', `/${path}/`, { cookie: pair });
      assert.equal(again.body, first.body);
      assert.deepEqual(again.headers.getSetCookie(), []);
    });
  }

  it('says when a cookie ends, and takes none that has', async () => {
    const now = Math.floor(Date.now() / 1000);
    const { headers } = await ask('cookie', '/');
    const [said = ''] = headers.getSetCookie();
    const bytes = Buffer.from(/"([^"]+)"/.exec(said)![1]!, 'base64');
    let expires = 0;
    for (const [at, byte] of bytes.subarray(bytes.indexOf(0x10, 2 + bytes[1]!) + 1).entries()) {
      expires += (byte & 0x7f) * 128 ** at;
    }
    assert.ok(expires >= now + HOUR && expires <= now + HOUR + 60, `${expires} at ${now}`);
    const at = (seconds: number) => ({ cookie: `sid=${cookieValue(addressOf(ports[2]), now + seconds)}` });
    assert.equal(await answers('cookie', '/', at(100)), '2');
    assert.equal(await answers('cookie', '/', at(-100)), '0,1,2,3');
    assert.equal((await ask('cookie', '/', at(-100))).headers.getSetCookie().length, 1);
  });

  it('takes an address alone, and nothing that is none', async () => {
    const session = (value: string) => ({ cookie: `sid="${value}"` });
    assert.equal(await answers('cookie', '/', session(base64(addressOf(ports[1])))), '1');
    for (const value of [
      '',
      '!',
      base64('\n\xff'),
      base64('\x12\x02ab'),
      'A'.repeat(4096),
      base64('127.0.0.1:1'),
      base64(`${addressOf(ports[1])} `),
    ]) {
      assert.equal(await answers('cookie', '/', session(value)), '0,1,2,3', value.slice(0, 20));
    }
  });

  it('goes by what hosts are: those that serve, or those that the cluster names', async () => {
    const at = (index: number) => ({ cookie: `sid=${cookieValue(addressOf(ports[index]))}` });
    assert.equal(await answers('cookie', '/health/', at(0)), '0');
    assert.equal(await answers('cookie', '/health/', at(1)), '1');
    assert.doesNotMatch(await answers('cookie', '/health/', at(2)), /2/);
    assert.doesNotMatch(await answers('cookie', '/health/', at(3)), /3/);
    assert.equal(await answers('cookie', '/draining/', at(2)), '2');
    assert.equal(await answers('cookie', '/nobody/', at(1)), '0,1,2,3');
  });

  it('goes before the host that a request names', async () => {
    const named = (index: number) => ({ 'x-proxy-original-dst-host': addressOf(ports[index]) });
    assert.equal(await answers('cookie', '/named/', named(1)), '1');
    const session = { cookie: `sid=${cookieValue(addressOf(ports[1]))}` };
    assert.equal(await answers('cookie', '/named/', { ...named(2), ...session }), '1');
  });

  it('lets another attempt go elsewhere, and tells of where that was', async () => {
    const before = [stat('main.stateful_session.cookies.failed_open'), stat('main.stateful_session.cookies.routed')];
    const { status, body, headers } = await ask('cookie', '/retried/fail', {
      cookie: `sid=${cookieValue(addressOf(ports[1]))}`,
    });
    assert.equal(status, 503);
    assert.notEqual(body, '1');
    const value = Buffer.from(/"([^"]+)"/.exec(headers.getSetCookie()[0]!)![1]!, 'base64').toString('latin1');
    assert.ok(value.includes(addressOf(ports[Number(body)])));
    await untilEqual(before[0]! + 1, () => stat('main.stateful_session.cookies.failed_open'), 'requests elsewhere');
    assert.equal(stat('main.stateful_session.cookies.routed'), before[1]);
  });

  it('keeps a session by header, and answers 503 where its host cannot be used', async () => {
    const names = ['routed', 'failed_open', 'failed_closed', 'no_session'];
    const counts = () => names.map((name) => stat(`header.stateful_session.strict.${name}`));
    assert.deepEqual(counts(), [0, 0, 0, 0]);
    const first = await ask('header', '/');
    assert.equal(first.headers.get('x-session'), base64(addressOf(ports[Number(first.body)])));
    const session = { 'x-session': base64(addressOf(ports[3])) };
    const second = await ask('header', '/', session);
    assert.deepEqual([second.body, second.headers.get('x-session')], ['3', null]);
    const lost = await ask('header', '/', { 'x-session': base64('127.0.0.1:9') });
    assert.deepEqual([lost.status, lost.body, lost.headers.get('x-session')], [503, 'no healthy upstream', null]);
    assert.equal((await ask('header', '/direct')).headers.get('x-session'), null);
    await untilEqual('1,0,1,1', () => counts().join(), 'counts');
  });

  it('keeps the session of an upstream in its own header, which is given back as it was', async () => {
    const first = await ask('cookie', '/envelope/named');
    const name = `made by ${first.body}; "~"`;
    const told = first.headers.get('mcp-session-id')!;
    assert.equal(told, `${base64(addressOf(ports[Number(first.body)]))};UV:${base64(name)}`);
    for (let times = 0; times < 8; times += 1) {
      const { body, headers } = await ask('cookie', '/envelope/named', { 'mcp-session-id': told });
      assert.deepEqual([body, headers.get('x-got'), headers.get('mcp-session-id')], [first.body, name, told]);
    }
  });

  it('leaves alone what is no session of an upstream', async () => {
    const host = base64(addressOf(ports[2]));
    assert.equal((await ask('cookie', '/envelope/')).headers.get('mcp-session-id'), null);
    assert.equal((await ask('cookie', '/envelope/twice')).headers.get('mcp-session-id'), 'a, b');
    const strange = [
      host,
      `${host};UV:`,
      `${host};UV:%`,
      `${host};XX:${base64('a')}`,
      `;UV:${base64('a\r\nx-evil: 1')}`,
    ];
    for (const sent of strange) {
      const { headers } = await ask('cookie', '/envelope/', { 'mcp-session-id': sent });
      assert.equal(headers.get('x-got'), sent);
    }
    const hostless = await ask('cookie', '/envelope/', { 'mcp-session-id': `;UV:${base64('mine')}` });
    assert.equal(hostless.headers.get('x-got'), 'mine');
    const away = await ask('cookie', '/envelope/', {
      'mcp-session-id': `${base64('127.0.0.1:9')};UV:${base64('mine')}`,
    });
    assert.deepEqual([away.status, away.headers.get('x-got')], [200, 'mine']);
  });

  it('does what a route says in its place', async () => {
    const cookie = `sid=${cookieValue(addressOf(ports[1]))}`;
    assert.equal(await answers('cookie', '/off/', { cookie }), '0,1,2,3');
    assert.deepEqual((await ask('cookie', '/off/')).headers.getSetCookie(), []);
    assert.equal(await answers('cookie', '/strict/', { cookie, 'x-host': base64(addressOf(ports[2])) }), '2');
    assert.equal(await answers('cookie', '/strict/', { cookie, 'x-host': base64('127.0.0.1:9') }), '503');
    const missing = { 'x-host': base64('127.0.0.1:9') };
    const { status, body } = await ask('cookie', '/missing-true/', missing);
    assert.deepEqual([status, body], [404, 'no healthy upstream']);
    assert.equal(await answers('cookie', '/missing-false/', missing), '0,1,2,3');
    assert.equal(await answers('cookie', '/missing-true/', { 'x-host': base64(addressOf(ports[2])) }), '2');
    assert.equal(await answers('cookie', '/strict-nobody/', { 'x-host': base64('127.0.0.1:9') }), '0,1,2,3');
    const under = { cookie: `under=${cookieValue(addressOf(ports[2]))}` };
    for (const path of ['/under/path', '/under/path/', '/under/path?a', '/under/path/more']) {
      assert.equal(await answers('cookie', path, under), '2', path);
    }
    assert.equal(await answers('cookie', '/under/pathology', under), '0,1,2,3');
    assert.deepEqual((await ask('cookie', '/under/pathology')).headers.getSetCookie(), []);
    assert.match(
      (await ask('cookie', '/under/path')).headers.getSetCookie()[0]!,
      /^under="[^"]+"; Path=\/under\/path; HttpOnly$/,
    );
  });

  it('lets a redirect that is followed go where it leads', async () => {
    const { status, body, headers } = await ask('cookie', '/moved/', { 'x-host': base64(addressOf(ports[1])) });
    assert.deepEqual([status, body, headers.get('x-host')], [200, '0', base64(addressOf(ports[0]))]);
  });

  it('does nothing without sessions', async () => {
    assert.equal(await answers('none', '/', { cookie: `sid=${cookieValue(addressOf(ports[1]))}` }), '0,1,2,3');
  });

  it('sends tunnels that end here to the host of their session', async () => {
    for (const index of [0, 1, 2, 3]) {
      const client = new WireClient(proxy.listeners.get('connect')!.port);
      const session = `cookie: sid=${cookieValue(addressOf(ports[index]))}`;
      client.write(`CONNECT h.example:80 HTTP/1.1\r\nhost: h.example:80\r\n${session}\r\n\r\n`);
      assert.match(await client.until('\r\n\r\n'), /^HTTP\/1.1 200 /);
      client.write('GET / HTTP/1.1\r\nhost: h\r\n\r\n');
      assert.equal((await client.response()).body, String(index));
      client.close();
    }
  });
});
