// Virtual hosts that come for themselves (VHDS) in the real program: told by the server unasked, or asked for by requests that wait.

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { bytesOf, ControlPlane, type Held } from '../support/control-plane.ts';
import { bootstrap, CLUSTER, cluster, type Form, LISTENER, ofForm, ROUTES } from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import {
  AGGREGATED,
  CHANGES,
  type OnDemandProxy,
  onDemandProxy,
  subscribed,
  unsubscribed,
} from '../support/on-demand-proxy.ts';
import { startWeir } from '../support/weir-process.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const HOSTS = 'config.route.v3.VirtualHost';
const HOST_URL = `type.googleapis.com/envoy.${HOSTS}`;
const SCOPES = 'config.route.v3.ScopedRouteConfiguration';
const ANY_PORT = socketAddress('127.0.0.1', 0);
const TYPES = 'type.googleapis.com/envoy.extensions.filters.http';
const ON_DEMAND = { name: 'on_demand', typed_config: { '@type': `${TYPES}.on_demand.v3.OnDemand` } };
const ROUTER = { name: 'router', typed_config: { '@type': `${TYPES}.router.v3.Router` } };

function said(text: string): readonly JsonObject[] {
  return [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: text } } }];
}

interface HostFields {
  readonly version?: string;
  readonly aliases?: readonly string[];
  readonly host?: JsonObject;
}

/** As the server has it. @param domain of the host, which is called so, too. */
function hostOf(domain: string, text = domain, { version = text, aliases = [], host = {} }: HostFields = {}): Held {
  const value = bytesOf(`proxy.${HOSTS}`, { name: domain, domains: [domain], routes: said(text), ...host });
  return { version, any: { type_url: HOST_URL, value }, aliases };
}

function setHosts(plane: ControlPlane, version: string, hosts: Readonly<Record<string, Held>>): void {
  plane.setRaw(HOSTS, version, new Map(Object.entries(hosts).map(([name, held]) => [`table/${name}`, held])));
}

function listener(form: Form, filters: readonly JsonObject[] = [ON_DEMAND], fields: JsonObject = {}): JsonObject {
  const rds = { route_config_name: 'table', config_source: ofForm(form) };
  const http_filters = [...filters, ROUTER];
  const manager = httpFilter({ stat_prefix: 'web', route_config: null, rds, http_filters, ...fields });
  return listenerWith([manager], { name: 'in', address: ANY_PORT });
}

function table(form: Form, source: JsonObject = {}): JsonObject {
  const hosts = [{ name: 'fixed', domains: ['fixed'], routes: said('fixed') }];
  return { name: 'table', virtual_hosts: hosts, vhds: { config_source: { ...ofForm(form), ...source } } };
}

function start(
  t: TestContext,
  form: Form,
  {
    filters = [ON_DEMAND],
    source = {},
    fields = {},
    onDemand = true,
    hosts = {},
  }: {
    filters?: readonly JsonObject[];
    source?: JsonObject;
    fields?: JsonObject;
    onDemand?: boolean;
    hosts?: Readonly<Record<string, Held>>;
  } = {},
): Promise<OnDemandProxy> {
  return onDemandProxy(t, form, (plane) => {
    if (onDemand) plane.onDemand.add(HOSTS);
    plane.set(ROUTES, '1', [table(form, source)]);
    plane.set(LISTENER, '1', [listener(form, filters, fields)]);
    setHosts(plane, '1', hosts);
  });
}

function get(host: string, rest = ''): string {
  return `GET / HTTP/1.1\r\nhost: ${host}\r\n${rest}\r\n`;
}

async function ask(port: number, host: string, request = get(host)): Promise<string> {
  const client = new WireClient(port);
  const { status, body } = await client.write(request).response();
  client.close();
  return `${status} ${body}`.trim();
}

const timesAsked = (plane: ControlPlane, name: string): number =>
  subscribed(plane).filter((asked) => asked === name).length;
const timesLeft = (plane: ControlPlane, name: string): number =>
  unsubscribed(plane).filter((left) => left === name).length;

describe('virtual hosts on demand', () => {
  for (const form of CHANGES) {
    it(`come when a request wants them, change and go: ${form.name}`, async (t) => {
      const { plane, weir, port } = await start(t, form, { hosts: { 'a.com': hostOf('a.com', 'one') } });
      assert.equal(await ask(port, 'fixed'), '200 fixed');
      assert.equal(timesAsked(plane, 'table/a.com'), 0);
      assert.equal(await ask(port, 'A.com'), '200 one');
      assert.equal(await ask(port, 'a.com'), '200 one');
      assert.equal(timesAsked(plane, 'table/a.com'), 1);
      assert.equal(await ask(port, 'absent.com'), '404');
      await untilEqual(1, () => timesLeft(plane, 'table/absent.com'), 'one that is not there and asked for no longer');

      setHosts(plane, '2', { 'a.com': hostOf('a.com', 'two') });
      await untilEqual('200 two', () => ask(port, 'a.com'), 'the virtual host as it is now');
      setHosts(plane, '3', { 'absent.com': hostOf('absent.com') });
      await untilEqual('404', () => ask(port, 'a.com'), 'the end of the virtual host');
      assert.equal(await ask(port, 'absent.com'), '200 absent.com');
      assert.deepEqual(plane.violations, []);
      assert.ok((await weir.stat('http.web.rds.table.vhds.config_reload'))! >= 4);
      const dump = await weir.admin('/config_dump?resource=dynamic_route_configs');
      assert.match(dump, /"name": "fixed"[\s\S]*"name": "absent.com"/);
    });
  }

  it('are asked for once for a thousand requests at a time, also of those whose clients leave', async (t) => {
    // A crowded machine takes long for so many connections.
    const { plane, weir, port } = await start(t, AGGREGATED, { source: { initial_fetch_timeout: '60s' } });
    plane.isSilent = true;
    const clients = Array.from({ length: 500 }, () => new WireClient(port));
    const answers = clients.map((client) => client.write(get('a.com')).response());
    const leaving = Array.from({ length: 500 }, () => new WireClient(port).write(get('a.com')));
    await untilEqual(1000, () => weir.stat('http.web.downstream_rq_active'), 'requests that wait');
    for (const client of leaving) client.close();
    await untilEqual(500, () => weir.stat('http.web.downstream_rq_active'), 'requests whose clients have stayed');
    // Each of the two workers may have asked, main once.
    await untilEqual(1, () => timesAsked(plane, 'table/a.com'), 'a request that the server has had');
    plane.isSilent = false;
    setHosts(plane, '2', { 'a.com': hostOf('a.com') });
    const statuses = new Set((await Promise.all(answers)).map(({ status, body }) => `${status} ${body}`));
    assert.deepEqual([...statuses], ['200 a.com']);
    for (const client of clients) client.close();
    await weir.untilStat('http.web.downstream_rq_active', 0);
    assert.equal(timesAsked(plane, 'table/a.com'), 1);
  });

  it('are waited for no longer than their source allows', async (t) => {
    const { plane, weir, port } = await start(t, AGGREGATED, { source: { initial_fetch_timeout: '0.5s' } });
    plane.isSilent = true;
    assert.equal(await ask(port, 'never.com'), '404');
    await untilEqual(1, () => timesLeft(plane, 'table/never.com'), 'one that nobody waits for');
    await weir.untilStat('http.web.no_route', 1);
  });

  it('are asked for by the next stream when the server ends in the middle', async (t) => {
    const { plane, port } = await start(t, AGGREGATED, { hosts: { 'a.com': hostOf('a.com') } });
    assert.equal(await ask(port, 'a.com'), '200 a.com');
    plane.isSilent = true;
    const waiting = ask(port, 'b.com');
    await untilEqual(1, () => timesAsked(plane, 'table/b.com'), 'a request that waits');
    // Nothing of it is told to the stream that ends.
    setHosts(plane, '2', { 'a.com': hostOf('a.com'), 'b.com': hostOf('b.com') });
    plane.endStreams();
    plane.isSilent = false;
    assert.equal(await waiting, '200 b.com');
    assert.equal(await ask(port, 'a.com'), '200 a.com');
    const last = plane.requests.findLast(({ type_url, resource_names_subscribe: names }) => {
      return type_url === HOST_URL && names.includes('*');
    });
    assert.deepEqual(last!.resource_names_subscribe.toSorted(), ['*', 'table/a.com', 'table/b.com']);
  });

  it('are met by aliases, and by any virtual host that serves the host', async (t) => {
    const aliased = hostOf('all', 'aliased', { aliases: ['table/x.com'], host: { domains: ['x.com', 'y.com'] } });
    const { plane, port } = await start(t, AGGREGATED, { hosts: { aliased } });
    assert.equal(await ask(port, 'x.com'), '200 aliased');
    assert.equal(await ask(port, 'y.com'), '200 aliased');
    assert.equal(timesAsked(plane, 'table/y.com'), 0);
  });

  it('are refused for themselves, and leave those that are good', async (t) => {
    const { plane, weir, port } = await start(t, AGGREGATED, {
      hosts: {
        'good.com': hostOf('good.com'),
        'bad.com': hostOf('bad.com', 'bad', { host: { routes: [{ match: { prefix: '/' } }] } }),
        'taken.com': hostOf('taken.com', 'taken', { host: { domains: ['fixed'] } }),
      },
    });
    const [good, bad, taken] = await Promise.all(['good.com', 'bad.com', 'taken.com'].map((host) => ask(port, host)));
    assert.deepEqual([good, bad, taken], ['200 good.com', '404', '404']);
    assert.equal(await ask(port, 'fixed'), '200 fixed');
    const refusals = (): string =>
      plane.requests.flatMap(({ error_detail: refusal }) => refusal?.message ?? []).join('\n');
    const conflict = /virtual host table\/taken\.com: fixed is a domain of another virtual host/;
    await untilEqual(true, () => conflict.test(refusals()), 'a refusal of a domain that is taken');
    await untilEqual(true, () => /table\/bad\.com: resources\[\d\]\.routes\[0\]/.test(refusals()), 'the other refusal');
    assert.ok((await weir.stat('http.web.rds.table.vhds.update_rejected'))! >= 1);
  });

  it('come to filters with what their routes say, and with bodies that were there first', async (t) => {
    const echo = {
      '@type': `${TYPES}.header_mutation.v3.HeaderMutationPerRoute`,
      mutations: { request_mutations: [] },
    };
    const rbac = (rules: JsonObject): JsonObject => ({ '@type': `${TYPES}.rbac.v3.RBACPerRoute`, rbac: { rules } });
    const denying = {
      action: 'DENY',
      policies: { all: { permissions: [{ any: true }], principals: [{ any: true }] } },
    };
    const filters = [
      { name: 'rbac', typed_config: { '@type': `${TYPES}.rbac.v3.RBAC` } },
      ON_DEMAND,
      { name: 'mutation', typed_config: { '@type': `${TYPES}.header_mutation.v3.HeaderMutation` } },
    ];
    const denied = { typed_per_filter_config: { rbac: rbac(denying), mutation: echo } };
    const { port } = await start(t, AGGREGATED, {
      filters,
      hosts: { 'open.com': hostOf('open.com'), 'denied.com': hostOf('denied.com', 'denied', { host: denied }) },
    });
    const post = (host: string, rest: string): string => `POST / HTTP/1.1\r\nhost: ${host}\r\n${rest}`;
    // A filter before this one that lets all pass without a route hears of the route all the same.
    const inOneRead = post('denied.com', 'content-length: 5\r\n\r\nhello');
    assert.equal(await ask(port, 'denied.com', inOneRead), '403 RBAC: access denied');
    const chunked = post('open.com', 'transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n');
    assert.equal(await ask(port, 'open.com', chunked), '200 open.com');
  });
});

describe('tunnels to virtual hosts on demand', () => {
  it('are admitted by the route that has come', async (t) => {
    const answer = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';
    const upstream = await WireUpstream.start((socket) => socket.once('data', () => socket.write(`${answer}through`)));
    t.after(() => upstream.close());
    const routes = (upgrade_configs: readonly JsonObject[]): JsonObject => ({
      routes: [{ match: { prefix: '/' }, route: { cluster: 'ws', upgrade_configs } }],
    });
    const { plane, port } = await start(t, AGGREGATED, {
      fields: { upgrade_configs: [{ upgrade_type: 'websocket' }] },
      hosts: {
        'open.com': hostOf('open.com', 'open', { host: routes([]) }),
        'closed.com': hostOf('closed.com', 'closed', {
          host: routes([{ upgrade_type: 'websocket', enabled: false }]),
        }),
      },
    });
    plane.set(CLUSTER, '2', [cluster('ws', upstream.port)]);
    await plane.answered(CLUSTER, '2');
    const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\n';
    const client = new WireClient(port).write(get('open.com', upgrade));
    await client.until('through');
    client.close();
    assert.equal(await ask(port, 'closed.com', get('closed.com', upgrade)), '403');
  });
});

describe('virtual hosts that the server tells unasked', () => {
  it('are there before a listener opens, and need no filter', async (t) => {
    const hosts = { 'a.com': hostOf('a.com', 'one'), 'b.com': hostOf('b.com') };
    const { plane, port } = await start(t, AGGREGATED, { filters: [], onDemand: false, hosts });
    assert.deepEqual([await ask(port, 'a.com'), await ask(port, 'b.com')], ['200 one', '200 b.com']);
    assert.equal(await ask(port, 'c.com'), '404');
    setHosts(plane, '2', { 'a.com': hostOf('a.com', 'two'), 'c.com': hostOf('c.com') });
    await untilEqual('200 c.com', () => ask(port, 'c.com'), 'another virtual host');
    assert.deepEqual([await ask(port, 'a.com'), await ask(port, 'b.com')], ['200 two', '404']);
    // Another table keeps them.
    plane.set(ROUTES, '2', [{ ...table(AGGREGATED), virtual_hosts: [] }]);
    await untilEqual('404', () => ask(port, 'fixed'), 'another table');
    assert.equal(await ask(port, 'a.com'), '200 two');
  });
});

describe('scopes on demand', () => {
  it('have their table asked for by the first request that wants it', async (t) => {
    const form = AGGREGATED;
    const plane = await ControlPlane.start(t);
    const scope = (name: string, on_demand: boolean): JsonObject => {
      return { name, on_demand, route_configuration_name: name, key: { fragments: [{ string_key: name }] } };
    };
    const tableOf = (name: string): JsonObject => {
      return { name, virtual_hosts: [{ name: 'v', domains: ['*'], routes: said(name) }] };
    };
    const fragments = [{ header_value_extractor: { name: ':authority', index: 0 } }];
    const scoped_routes = {
      name: 'scopes',
      scope_key_builder: { fragments },
      rds_config_source: ofForm(form),
      scoped_rds: { scoped_rds_config_source: ofForm(form) },
    };
    plane.set(CLUSTER, '1', []);
    plane.set(ROUTES, '1', [tableOf('eager'), tableOf('lazy')]);
    plane.set(SCOPES, '1', [scope('eager', false), scope('lazy', true), scope('never', true)]);
    plane.set(LISTENER, '1', [listener(form, [ON_DEMAND], { rds: null, scoped_routes })]);
    await using weir = await startWeir({ configYaml: bootstrap(form, [plane]), args: ['--concurrency', '2'] });
    const { port } = (await weir.listeners()).get('in')!;
    const stat = (name: string): Promise<number | undefined> => weir.stat(`http.web.scoped_rds.scopes.${name}`);
    assert.equal(await ask(port, 'eager'), '200 eager');
    assert.deepEqual([await stat('active_scopes'), await stat('on_demand_scopes')], [1, 2]);
    assert.equal(timesAsked(plane, 'lazy'), 0);
    assert.deepEqual(
      await Promise.all(Array.from({ length: 20 }, () => ask(port, 'lazy'))),
      Array(20).fill('200 lazy'),
    );
    assert.equal(timesAsked(plane, 'lazy'), 1);
    assert.equal(await ask(port, 'never'), '404');
    assert.equal(await ask(port, 'nobody'), '404');
    assert.deepEqual([await stat('all_scopes'), await stat('active_scopes')], [3, 3]);
  });
});
