// Hot restarts of a proxy that has everything from a management server, under traffic: no request fails, whatever changes meanwhile.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { socketAddress } from '../support/bootstrap.ts';
import { ControlPlane } from '../support/control-plane.ts';
import {
  assignment,
  bootstrap,
  CLUSTER,
  discoveringListener,
  ENDPOINTS,
  eds,
  FORMS,
  LISTENER,
  ofForm,
  ROUTES,
} from '../support/discovered-proxy.ts';
import { untilEqual } from '../support/eventually.ts';
import { PORTS, RestartRow } from '../support/restart-row.ts';
import { RestartTraffic } from '../support/restart-traffic.ts';

interface Upstreams {
  readonly static_resources: {
    readonly clusters: readonly [
      {
        readonly load_assignment: {
          readonly endpoints: readonly [
            {
              readonly lb_endpoints: readonly [
                {
                  readonly endpoint: {
                    readonly address: { readonly socket_address: { readonly port_value: number } };
                  };
                },
              ];
            },
          ];
        };
      },
    ];
  };
}

const [STATE, , CHANGES] = FORMS as [(typeof FORMS)[0], (typeof FORMS)[0], (typeof FORMS)[0]];

for (const form of [STATE, CHANGES]) {
  it(`takes over what a management server has told, under traffic: ${form.name}`, async (t) => {
    await using row = await RestartRow.open(['--drain-time-s', '1', '--parent-shutdown-time-s', '600']);
    const { clusters } = (row.bootstrap() as unknown as Upstreams).static_resources;
    const { port_value: port } =
      clusters[0].load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address;
    const plane = await ControlPlane.start(t);
    const source = ofForm(form);
    const listener = discoveringListener('http', 'table', source);
    const routes = [{ match: { prefix: '/' }, route: { cluster: 'b', timeout: '0s' } }];
    const table = { name: 'table', virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
    plane.set(CLUSTER, '0', [eds('b', source)]);
    plane.set(ENDPOINTS, '0', [assignment('b', port)]);
    plane.set(LISTENER, '0', [{ ...listener, address: socketAddress(row.ip, PORTS.http) }]);
    plane.set(ROUTES, '0', [table]);
    const admin = { address: socketAddress(row.ip, PORTS.admin) };
    const configYaml = bootstrap(form, [plane], { fields: { admin, stats_flush_interval: '0.2s' } });
    await row.start([], { configYaml });
    await using traffic = new RestartTraffic();
    const place = { host: row.ip, port: PORTS.http };
    traffic.keepAlive(place, 3);
    traffic.fresh(place, 3);
    for (let epoch = 1; epoch <= 3; epoch += 1) {
      const before = traffic.counts.requests;
      await untilEqual(true, () => traffic.counts.requests > before + 20, 'traffic');
      const taken = row.takeOver([], { configYaml });
      // Both processes hear of it.
      plane.set(ROUTES, String(epoch), [table]);
      plane.set(ENDPOINTS, String(epoch), [assignment('b', port)]);
      await taken;
      await untilEqual(true, () => traffic.counts.requests > before + 60, 'traffic behind it');
    }
    await traffic.stop();
    assert.deepEqual(traffic.counts.failures, []);
    assert.deepEqual(plane.violations, []);
    assert.match(await row.newest.admin('/server_info'), /"restart_epoch": 3/);
    assert.match(await row.newest.admin('/config_dump?resource=dynamic_listeners'), /"name": "http"/);
  });
}
