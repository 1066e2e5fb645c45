// What is known of an accepted connection, and its end.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { parseIp } from '../../../../src/base/ip-number.ts';
import { connectionFacts } from '../../../../src/data-plane/network/connection-facts.ts';
import { DownstreamConnection } from '../../../../src/data-plane/network/downstream-connection.ts';
import type { WorkerContext } from '../../../../src/data-plane/worker-context.ts';

const TCP = { remoteAddress: '::ffff:192.0.2.7', remotePort: 4711, localAddress: '::ffff:192.0.2.1', localPort: 80 };
const RESTORED = { remoteAddress: '198.51.100.7', remotePort: 1, localAddress: '198.51.100.1', localPort: 2 };

function connection(socket: Partial<typeof TCP>): DownstreamConnection {
  return new DownstreamConnection(socket as unknown as Socket, 1000, 1024);
}

/** Of a context that numbers connections from 1. */
function facts(...connections: readonly DownstreamConnection[]) {
  let last = 0;
  const context = { nextConnectionId: () => ++last } as unknown as WorkerContext;
  return connections.map((each) => connectionFacts(context, each));
}

function endsOf(one: DownstreamConnection) {
  const [{ remote, directRemote, local, directLocal }] = facts(one) as [ReturnType<typeof facts>[0] & object];
  return { remote, directRemote, local, directLocal };
}

describe('the ends of a connection', () => {
  test('are those of its socket, IPv4 in its own notation', () => {
    const one = connection(TCP);
    const remote = { ip: '192.0.2.7', port: 4711 };
    const local = { ip: '192.0.2.1', port: 80 };
    assert.deepEqual(endsOf(one), { remote, directRemote: remote, local, directLocal: local });
    assert.deepEqual([one.remoteIp, one.directRemoteIp], [parseIp('192.0.2.7'), parseIp('192.0.2.7')]);
    assert.deepEqual(one.localIp, parseIp('192.0.2.1'));
  });

  test('are the restored ones, with those of the socket beside them', () => {
    const one = connection(TCP);
    one.restoreAddresses(RESTORED);
    assert.deepEqual(endsOf(one), {
      remote: { ip: '198.51.100.7', port: 1 },
      directRemote: { ip: '192.0.2.7', port: 4711 },
      local: { ip: '198.51.100.1', port: 2 },
      directLocal: { ip: '192.0.2.1', port: 80 },
    });
    assert.deepEqual([one.remoteIp, one.directRemoteIp], [parseIp('198.51.100.7'), parseIp('192.0.2.7')]);
    assert.deepEqual(one.localIp, parseIp('198.51.100.1'));
  });

  test('of a pipe are empty', () => {
    const one = connection({});
    const nowhere = { ip: '', port: 0 };
    assert.deepEqual(endsOf(one), { remote: nowhere, directRemote: nowhere, local: nowhere, directLocal: nowhere });
    assert.deepEqual([one.remoteIp, one.directRemoteIp, one.localIp], [undefined, undefined, undefined]);
  });
});

test('a connection is numbered when somebody asks first, and keeps its number', () => {
  const [first, second] = [connection(TCP), connection(TCP)];
  const [a, b, again] = facts(second, first, second);
  assert.deepEqual([a!.connectionId, b!.connectionId], [1, 2]);
  assert.equal(again, a);
  assert.equal(a!.requestedServerName, '');
});

test('what listener filters have found out goes along when another listener takes the connection over', () => {
  const one = connection(TCP);
  one.restoreAddresses(RESTORED);
  one.announce('tls', 'a.example', ['h2']);
  one.fingerprints = { ja3: 'a', ja4: 'b' };
  one.metadata = { test: { a: 'b' } };
  one.passedTlvs = Buffer.from('tlvs');
  const other = one.handedOver(512);
  const [told] = facts(other);
  assert.deepEqual([told!.requestedServerName, told!.applicationProtocols], ['a.example', ['h2']]);
  assert.deepEqual(told!.fingerprints, { ja3: 'a', ja4: 'b' });
  assert.deepEqual(told!.metadata, { test: { a: 'b' } });
  assert.equal(told!.remote.ip, RESTORED.remoteAddress);
  assert.equal(other.passedTlvs?.toString(), 'tlvs');
  assert.equal(other.bufferLimitBytes, 512);
});

test('the end of a connection is told once, to whoever has opened it', () => {
  const one = connection(TCP);
  one.closed();
  const told: DownstreamConnection[] = [];
  one.open({ onConnectionClosed: (closed) => void told.push(closed) });
  one.closed();
  one.closed();
  assert.deepEqual(told, [one]);
});
