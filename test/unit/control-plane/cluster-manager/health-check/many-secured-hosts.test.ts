// Checks over TLS of more hosts than may shake hands at a time: real servers, and a clock that the test turns.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { type JsonObject, socketAddress } from '../../../../support/bootstrap.ts';
import { CertificateFolder, type TestCertificate } from '../../../../support/certificates.ts';
import { eventually } from '../../../../support/eventually.ts';
import { tlsMessage } from '../../../../support/tls-config.ts';
import { Watched } from '../../../../support/watched-cluster.ts';

const AT_A_TIME = 16;
const HOLD_MS = 50;
const TIMEOUT_MS = 1000;

let folder: CertificateFolder;
let identity: TestCertificate;

before(async () => {
  folder = new CertificateFolder();
  identity = await folder.make('server');
});

after(() => folder[Symbol.dispose]());

/** Takes connections at every address of the loopback network. */
async function listen(server: Server): Promise<number> {
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** The connections of such a check are kept. */
const ECHO = { send: { text: '77' }, receive: [{ text: '77' }] };

/** So many hosts at one server, each with an address of its own. */
function checkedOverTls(count: number, port: number, check: JsonObject = {}): Watched {
  const members = Array.from({ length: count }, (_, index) => ({
    endpoint: { address: socketAddress(`127.0.0.${index + 1}`, port) },
  }));
  const { certificatePath: filename } = identity;
  const context = { common_tls_context: { validation_context: { trusted_ca: { filename } } } };
  const thresholds = { unhealthy_threshold: 1, healthy_threshold: 1 };
  return new Watched({
    fields: {
      load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: members }] },
      transport_socket: { name: 'tls', typed_config: tlsMessage('UpstreamTlsContext', context) as JsonObject },
      health_checks: [{ timeout: '1s', interval: '60s', ...thresholds, tcp_health_check: check }],
    },
  });
}

const value = (watched: Watched, name: string): number => watched.stats.store.value(`cluster.web.${name}`) ?? 0;

describe('checks of many hosts over TLS', () => {
  it('all pass, and are counted as connections are', async () => {
    const server = createTlsServer({ cert: identity.certificate, key: identity.key }, (socket) => {
      socket.on('error', () => {});
      socket.pipe(socket);
    });
    const count = 3 * AT_A_TIME;
    using watched = checkedOverTls(count, await listen(server), ECHO);
    await eventually(() => value(watched, 'health_check.success') === count, 'every check');
    assert.equal(value(watched, 'health_check.healthy'), count);
    assert.ok(value(watched, 'health_check.handshake_queued') > 0);
    assert.equal(value(watched, 'ssl.handshake'), count);
    assert.equal(value(watched, 'ssl.versions.TLSv1.2'), count);
    assert.equal(value(watched, 'ssl.curves.X25519') + value(watched, 'ssl.curves.P-256'), count);
    const { store } = watched.stats;
    assert.equal(store.scope('cluster.web.').value('ssl.versions.TLSv1.2'), count, 'where workers count them, too');
    server.close();
  });

  it('begin a few at a time where hosts say nothing, and are not blamed for waiting', async () => {
    const connections: Socket[] = [];
    let hellos = 0;
    const server = createServer((socket) => {
      connections.push(socket);
      socket.on('error', () => {});
      socket.once('data', () => {
        hellos += 1;
      });
    });
    const more = 4;
    const count = AT_A_TIME + more;
    using watched = checkedOverTls(count, await listen(server));
    await eventually(() => connections.length === count && hellos === AT_A_TIME, 'the first hellos');
    assert.equal(value(watched, 'health_check.handshake_queued'), more);

    // One place is free with the first host that leaves; of those that wait, one may leave as well.
    connections[0]!.destroy();
    await eventually(() => value(watched, 'health_check.failure') === 1 && hellos >= AT_A_TIME, 'a host lost');

    watched.clock.turn(HOLD_MS);
    await eventually(() => hellos >= count - 1, 'the others');
    // Those of the first turn have had their time; the others began it later.
    watched.clock.turn(TIMEOUT_MS - HOLD_MS);
    const failed = value(watched, 'health_check.failure');
    assert.ok(failed >= AT_A_TIME && failed < count, `${failed} have failed`);
    watched.clock.turn(HOLD_MS);
    assert.equal(value(watched, 'health_check.failure'), count);
    for (const connection of connections) connection.destroy();
    server.close();
  });

  it('leave their places in the queue when they are no longer wanted', async () => {
    let accepted = 0;
    const connections: Socket[] = [];
    const server = createServer((socket) => {
      accepted += 1;
      connections.push(socket);
      socket.on('error', () => {});
    });
    const count = AT_A_TIME + 4;
    const watched = checkedOverTls(count, await listen(server));
    await eventually(() => accepted === count, 'all connections');
    await eventually(() => value(watched, 'health_check.handshake_queued') === 4, 'those that wait');
    watched[Symbol.dispose]();
    assert.equal(watched.clock.timerCount, 0, 'no check goes on');
    for (const connection of connections) connection.destroy();
    server.close();
  });
});
