// The same resources by every form of the discovery protocol: what the proxy has and shows is the same.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { ControlPlane } from '../support/control-plane.ts';
import {
  answerOf,
  assignment,
  bootstrap,
  CLUSTER,
  cluster,
  discoveringListener,
  ENDPOINTS,
  eds,
  FORMS,
  type Form,
  LISTENER,
  ofForm,
  ROUTES,
  upstreamSaying,
} from '../support/discovered-proxy.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

interface Shown {
  readonly dump: unknown;
  readonly clusters: readonly string[];
  readonly listeners: readonly string[];
}

it('dumps and listings are the same by every form of the protocol, old names and new', async (t) => {
  const plane = await ControlPlane.start(t);
  const [one, two] = [await upstreamSaying(t, 'one'), await upstreamSaying(t, 'two')];
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'b' } }];
  const table = { name: 'table', virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
  const tell = (form: Form): void => {
    const source = ofForm(form);
    plane.set(CLUSTER, '1', [cluster('a', one), eds('b', source), eds('c', source, { service_name: 'service/c' })]);
    plane.set(ENDPOINTS, '1', [assignment('b', two), assignment('service/c', one, two)]);
    plane.set(LISTENER, '1', [discoveringListener('in', 'table', source)]);
    plane.set(ROUTES, '1', [table]);
  };
  const shown = new Map<string, Shown>();
  for (const form of FORMS) {
    tell(form);
    await using weir = await startWeir({ configYaml: bootstrap(form, [plane]) });
    assert.equal(await answerOf(weir, 'in'), '200 two');
    shown.set(form.name, await shownBy(weir));
  }
  const [[, first], ...others] = [...shown] as [[string, Shown], ...[string, Shown][]];
  const text = JSON.stringify(first.dump);
  for (const found of [/"dynamic_active_clusters"/, /"dynamic_listeners"/, /"dynamic_route_configs"/, /service\/c/])
    assert.match(text, found);
  for (const [name, other] of others) assert.deepEqual(other, first, name);
  assert.deepEqual(plane.violations, []);
});

async function shownBy(weir: WeirProcess): Promise<Shown> {
  const { configs } = JSON.parse(await weir.admin('/config_dump?include_eds')) as { readonly configs: JsonObject[] };
  const clusters = (await weir.admin('/clusters')).split('\n');
  const counted = /::(?:cx|rq)_|^xds_0::/;
  return {
    // The bootstrap says by which form it asks.
    dump: configs.filter((config) => !/BootstrapConfigDump$/.test(String(config['@type']))).map(withoutForm),
    clusters: clusters.filter((line) => !counted.test(line)).toSorted(),
    listeners: [...(await weir.listeners()).keys()],
  };
}

const OF_THE_FORM: ReadonlySet<string> = new Set(['config_source', 'eds_config', 'last_updated']);

/** What says where resources come from, when they came, and which ports the system has chosen. */
function withoutForm(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutForm);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => !OF_THE_FORM.has(key));
  return Object.fromEntries(entries.map(([key, each]) => [key, withoutForm(each)]));
}
