// GET /config_dump of the real program: what it shows loads again, and holds no secret.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import protojson from 'protobufjs/ext/protojson.js';
import { protoSchema } from '../../src/config/proto/root.ts';
import { clusterNamed, httpFilter, listenerWith, mustLoad, socketAddress } from '../support/bootstrap.ts';
import { startWeir } from '../support/weir-process.ts';

const SECRET = 'planted';
const TYPE_URL = 'type.googleapis.com/envoy.';

const BOOTSTRAP = {
  node: { id: 'one', metadata: { role: 'front' } },
  admin: { address: socketAddress('127.0.0.1', 0) },
  static_resources: {
    clusters: [clusterNamed('web'), clusterNamed('api', { connect_timeout: '0.125s', lb_policy: 'MAGLEV' })],
    listeners: [
      listenerWith([httpFilter({ route_config: { name: 'front', virtual_hosts: [] } })], {
        address: socketAddress('127.0.0.1', 0),
      }),
    ],
  },
};

interface Configs {
  readonly configs: readonly { readonly '@type': string; readonly bootstrap?: { readonly static_resources: never } }[];
}

async function dumpOf(adminUrl: string, query = ''): Promise<string> {
  const response = await fetch(`${adminUrl}/config_dump${query}`);
  assert.equal(response.status, 200);
  return response.text();
}

describe('the configuration of a running program', () => {
  it('is shown as messages that load again to the same settings', async () => {
    await using weir = await startWeir({ configYaml: JSON.stringify(BOOTSTRAP) });
    const text = await dumpOf(weir.adminUrl, '?include_eds');
    const { configs } = JSON.parse(text) as Configs;
    const names = ['Bootstrap', 'Clusters', 'Endpoints', 'Listeners', 'ScopedRoutes', 'Routes', 'Secrets'];
    assert.deepEqual(
      configs.map((config) => config['@type']),
      names.map((name) => `${TYPE_URL}admin.v3.${name}ConfigDump`),
    );
    const { messages: _messages, ...settings } = mustLoad(BOOTSTRAP);
    const { messages: _again, ...again } = mustLoad(configs[0]!.bootstrap!);
    assert.deepEqual(again, settings);
    // The root has all messages, and this reader looks there for what is in an Any.
    const type = protoSchema().root.lookupType('proxy.admin.v3.ConfigDump');
    const parsed = protojson.fromJsonString(type, text.replaceAll(TYPE_URL, TYPE_URL.replace('envoy', 'proxy')));
    assert.equal((parsed as unknown as { configs: object[] }).configs.length, names.length);
    // It is live, so that it waits for nothing; without TLS there are no certificates.
    assert.deepEqual(await (await fetch(`${weir.adminUrl}/init_dump`)).json(), {});
    assert.deepEqual(await (await fetch(`${weir.adminUrl}/certs`)).json(), { certificates: [] });
  });

  it('shows no secret, neither in a dump nor in the log', async () => {
    const google = {
      target_uri: 'tracer',
      stat_prefix: 'tracer',
      channel_credentials: { ssl_credentials: { private_key: { inline_string: SECRET } } },
      call_credentials: [{ access_token: SECRET }],
      config: { fields: { token: SECRET } },
    };
    const route = { match: { prefix: '/' }, route: { cluster: 'web' } };
    const header = { header: { key: 'Authorization', value: SECRET } };
    const virtualHost = { name: 'all', domains: ['*'], routes: [route], request_headers_to_add: [header] };
    const secretive = {
      ...BOOTSTRAP,
      node: { id: 'one', metadata: { role: 'front', vault: { password: SECRET } } },
      cluster_manager: { outlier_detection: { event_service: { grpc_service: { google_grpc: google } } } },
      static_resources: {
        ...BOOTSTRAP.static_resources,
        listeners: [
          listenerWith([httpFilter({ route_config: { virtual_hosts: [virtualHost] } })], {
            address: socketAddress('127.0.0.1', 0),
          }),
        ],
      },
    };
    const again = JSON.stringify({ node: secretive.node });
    await using weir = await startWeir({
      configYaml: JSON.stringify(secretive),
      args: ['-l', 'trace', '--config-yaml', again],
    });
    const whole = await dumpOf(weir.adminUrl, '?include_eds');
    assert.equal(whole.split('[redacted]').length - 1, 7);
    assert.ok(!whole.includes(SECRET));
    for (const path of ['/server_info', '/clusters', '/clusters?format=json', '/listeners', '/stats', '/runtime']) {
      assert.ok(!(await (await fetch(weir.adminUrl + path)).text()).includes(SECRET), path);
    }
    const { stderr, stdout } = await weir.stop();
    assert.ok(stderr.includes('[main]'), 'there is a log');
    assert.ok(!(stderr + stdout).includes(SECRET));
  });
});
