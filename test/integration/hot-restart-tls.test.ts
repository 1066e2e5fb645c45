// Clients that speak TLS while weirs take over from one another.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../support/bootstrap.ts';
import { CertificateFolder } from '../support/certificates.ts';
import { PORTS, RestartRow } from '../support/restart-row.ts';
import { RestartTraffic } from '../support/restart-traffic.ts';
import { isResumed, newSession } from '../support/tls-client.ts';
import { pair, tlsSocket } from '../support/tls-config.ts';

const RESTARTS = 3;
const TIMES = ['--drain-time-s', '1', '--parent-shutdown-time-s', '600'];

test('connections secured while processes take over from one another are answered, and their sessions go on', async () => {
  using folder = new CertificateFolder();
  const certificate = await folder.make('server', { altNames: 'DNS:a.example' });
  await using row = await RestartRow.open(TIMES);
  const secure = { ca: certificate.certificate, servername: 'a.example' };
  const options = {
    configYaml: JSON.stringify(secured(row.bootstrap(), tlsSocket({ tls_certificates: [pair(certificate)] }))),
  };
  const args = ['--concurrency', '2'];
  const first = await row.start(args, options);
  const place = { host: row.ip, port: PORTS.http, secure };
  const older = { ...secure, host: row.ip, maxVersion: 'TLSv1.2' } as const;
  const newer = { ...secure, host: row.ip, minVersion: 'TLSv1.3' } as const;
  const sessions = [
    { client: older, session: await newSession(PORTS.http, older) },
    { client: newer, session: await newSession(PORTS.http, newer) },
  ];
  await using traffic = new RestartTraffic();
  traffic.fresh(place, 4);
  traffic.keepAlive(place, 2);
  traffic.http2(place, 2);
  for (let restart = 0; restart < RESTARTS; restart++) {
    const weir = await row.takeOver(args, options);
    await weir.untilStat('server.parent_connections', 0);
    for (const { client, session } of sessions) {
      assert.ok(
        await isResumed(PORTS.http, session, client),
        `${restart + 1} restarts later, ${JSON.stringify(client)}`,
      );
    }
  }
  const { requests, connections, failures } = await traffic.stop();
  assert.deepEqual(failures, []);
  assert.ok(requests >= connections);
  // What the processes tell each other stays between them.
  for (const weir of [first, row.newest]) assert.doesNotMatch(weir.output.stderr, /ticket/i);
  assert.doesNotMatch(await row.newest.admin('/config_dump'), /ticket/i);
});

/** Its first listener speaks TLS. */
function secured(bootstrap: JsonObject, transport_socket: object): object {
  const { static_resources: resources } = bootstrap as {
    static_resources: { listeners: [JsonObject, ...JsonObject[]] };
  };
  const [listener, ...listeners] = resources.listeners;
  const chains = (listener.filter_chains as JsonObject[]).map((chain) => ({ ...chain, transport_socket }));
  return {
    ...bootstrap,
    static_resources: { ...resources, listeners: [{ ...listener, filter_chains: chains }, ...listeners] },
  };
}
