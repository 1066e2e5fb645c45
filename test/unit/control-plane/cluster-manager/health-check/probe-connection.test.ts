// The connection of a probe: what it tells of, and what it leaves behind.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import type { ProbeTarget } from '../../../../../src/control-plane/cluster-manager/health-check/probe.ts';
import {
  type ConnectionListener,
  ProbeConnection,
} from '../../../../../src/control-plane/cluster-manager/health-check/probe-connection.ts';
import { eventually } from '../../../../support/eventually.ts';
import { NO_FAULTS } from '../../../../support/faults.ts';
import { HealthServer } from '../../../../support/health-server.ts';

/** Asks with each connection that opens, and writes down what it hears. */
class Listener implements ConnectionListener {
  readonly heard: string[] = [];
  readonly #question: Buffer;

  constructor(question: Buffer) {
    this.#question = question;
  }

  onOpen(socket: Socket): void {
    this.heard.push('open');
    socket.write(this.#question);
  }

  onBytes(bytes: Buffer): void {
    this.heard.push(bytes.toString('latin1'));
  }

  onLost(reason: string | undefined): void {
    this.heard.push(`lost: ${reason ?? 'ended'}`);
  }
}

const targetAt = (port: number): ProbeTarget => ({ address: { kind: 'ip', ip: '127.0.0.1', port }, authority: '' });

describe('the connection of a probe', () => {
  it('tells of no end between checks, and is made anew for the next one', async () => {
    await using server = await HealthServer.start((socket) => socket.write('yes'));
    const listener = new Listener(Buffer.from('?'));
    const connection = new ProbeConnection(undefined, [], NO_FAULTS, listener);
    connection.open(targetAt(server.port));
    await eventually(() => listener.heard.length === 2, 'the answer');
    connection.keep();
    server.dropConnections();
    await eventually(() => server.openConnections === 0, 'the end of the connection');
    // The end has come here, too, when one that begins after it has.
    await using second = await HealthServer.start(() => {});
    const witness = new Listener(Buffer.from('?'));
    const other = new ProbeConnection(undefined, [], NO_FAULTS, witness);
    other.open(targetAt(second.port));
    await eventually(() => second.received.length === 1, 'the second connection');
    other.close();
    connection.open(targetAt(server.port));
    await eventually(() => listener.heard.length === 4, 'the second answer');
    connection.close();
    assert.deepEqual([listener.heard, server.connections], [['open', 'yes', 'open', 'yes'], 2]);
  });

  it('is lost when its peer ends it, though there is more to say than the peer takes, and says no more', async () => {
    const question = Buffer.alloc(64 * 1024 * 1024);
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const accepted = once(server, 'connection');
    const listener = new Listener(question);
    new ProbeConnection(undefined, [], NO_FAULTS, listener).open(targetAt((server.address() as AddressInfo).port));
    const [peer] = (await accepted) as [Socket];
    peer.end();
    await eventually(() => listener.heard.length === 2, 'the loss of the connection');
    assert.deepEqual(listener.heard, ['open', 'lost: ended']);
    let received = 0;
    peer.on('data', (bytes) => {
      received += bytes.length;
    });
    peer.resume();
    await once(peer, 'end');
    peer.destroy();
    assert.ok(received < question.length);
    server.close();
  });
});
