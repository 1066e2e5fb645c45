// What was broken off on one side of the data plane is seen to be so on the other; what ended is seen to have ended.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { TcpProxyConnection } from '../../src/data-plane/tcp-proxy/tcp-proxy-connection.ts';
import { TcpUpstream } from '../../src/data-plane/tcp-proxy/tcp-upstream.ts';
import { DataPlaneFixture, httpManager, loopback, routeTo, tcpProxy } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTunnel, RAW_PATHS } from '../support/raw-paths.ts';
import { flood, tunnelBench } from '../support/tunnel-bench.ts';
import { peerEnd, WireUpstream } from '../support/wire.ts';

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';

for (const [name, open] of Object.entries(RAW_PATHS)) {
  for (const readMode of ['lean', 'events'] as const) {
    describe(`${name}, reading by ${readMode}`, () => {
      test('passes on the reset of a client', async (t) => {
        const { proxy, wire, server } = await open(t, { readMode });
        const seen = peerEnd(server);
        wire.socket.resetAndDestroy();
        assert.equal(await seen, 'ECONNRESET');
        await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end of the connection');
        assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 0);
      });

      test('passes on the reset of an upstream', async (t) => {
        const { proxy, wire, server } = await open(t, { readMode });
        server.resetAndDestroy();
        await wire.rest();
        await eventually(() => wire.error !== null, 'the reset');
        assert.equal((wire.error as NodeJS.ErrnoException).code, 'ECONNRESET');
        await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end of the connection');
      });

      test('passes on a reset of which a write tells, with bytes on their way', async (t) => {
        const { proxy, wire, server, paused } = await open(t, { readMode });
        const { bytes } = await flood(
          (piece) => wire.write(piece),
          () => paused() > 0,
        );
        wire.socket.resetAndDestroy();
        const isGone = (): boolean => proxy.dataPlane.connectionCount === 0;
        await eventually(() => isGone() || !server.write('anybody?'), 'the end of the connection');
        await eventually(isGone, 'the end of the connection');
        let arrived = 0;
        server.on('data', (chunk: Buffer) => {
          arrived += chunk.length;
        });
        assert.equal(await peerEnd(server), 'ECONNRESET');
        assert.ok(arrived < bytes, `${arrived} of ${bytes} bytes have arrived`);
      });

      test('passes on the end of a client, behind what it has sent', async (t) => {
        const { wire, server } = await open(t, { readMode });
        let text = '';
        server.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
        wire.socket.end('last words');
        assert.equal(await peerEnd(server), 'end');
        assert.equal(text, 'last words');
      });

      test('is ended at a stop when nothing moves', async (t) => {
        const { proxy, wire, server } = await open(t, { readMode });
        const ends = [peerEnd(server), peerEnd(wire.socket)];
        await proxy.dataPlane.shutdown(60_000);
        assert.deepEqual(await Promise.all(ends), ['end', 'end']);
      });

      for (const receiver of ['upstream', 'client']) {
        test(`is broken off at the end of a stop when bytes wait for the ${receiver}`, async (t) => {
          const { proxy, wire, server, paused } = await open(t, { readMode });
          wire.socket.removeAllListeners('data').removeAllListeners('error').pause();
          const [sending, receiving] = receiver === 'upstream' ? [wire.socket, server] : [server, wire.socket];
          const heldBack = (): number =>
            receiver === 'upstream' ? paused() : proxy.clusterStat('web', 'upstream_flow_control_paused_reading_total');
          await flood(
            (piece) => sending.write(piece),
            () => heldBack() > 0,
          );
          const atSender = peerEnd(sending);
          await proxy.dataPlane.shutdown(50);
          // Whoever was about to send may find out by that.
          assert.match(await atSender, /ECONNRESET|EPIPE/);
          assert.equal(await peerEnd(receiving), 'ECONNRESET');
        });
      }

      test('counts every pause and every resumption once', async (t) => {
        const { proxy, wire, server, paused, resumed } = await open(t, { readMode });
        const count = (what: 'backed_up' | 'drained' | 'paused_reading' | 'resumed_reading'): number =>
          proxy.clusterStat('web', `upstream_flow_control_${what}_total`);
        assert.equal(resumed(), 0);
        await flood(
          (piece) => wire.write(piece),
          () => paused() > resumed(),
        );
        // The system may have taken more after all and let it go on before: each pause but the last is over.
        assert.equal(resumed(), paused() - 1);
        assert.equal(count('drained'), count('backed_up') - 1);
        server.resume();
        await eventually(() => wire.socket.writableLength === 0 && resumed() === paused(), 'the rest of the upload');
        assert.equal(count('backed_up'), count('drained'));

        wire.socket.pause();
        await flood(
          (piece) => server.write(piece),
          () => count('paused_reading') > count('resumed_reading'),
        );
        assert.equal(count('resumed_reading'), count('paused_reading') - 1);
        wire.socket.resume();
        await eventually(
          () => server.writableLength === 0 && count('resumed_reading') === count('paused_reading'),
          'the rest of the download',
        );
      });
    });
  }
}

describe('a tunnel whose time is over', () => {
  for (const terminatesConnect of [true, false]) {
    test(`is broken off on both sides${terminatesConnect ? ', also where it ends here' : ''}`, async (t) => {
      const clock = new ManualClock();
      const limits = { terminatesConnect, maxStreamDurationMs: 1000 };
      const { wire, server } = await openTunnel(t, { clock }, limits);
      wire.socket.removeAllListeners('error');
      const ends = [peerEnd(server), peerEnd(wire.socket)];
      clock.turn(1010);
      assert.deepEqual(await Promise.all(ends), ['ECONNRESET', 'ECONNRESET']);
    });
  }
});

describe('a response that breaks off', () => {
  const starts = {
    'with a length': 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart',
    'in chunks': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n',
    'until the end': 'HTTP/1.1 200 OK\r\n\r\npart',
  };
  for (const [framing, start] of Object.entries(starts)) {
    for (const version of ['1.0', '1.1']) {
      test(`${framing}, to an HTTP/${version} client, is broken off there`, async (t) => {
        const upstream = await WireUpstream.answering(start);
        t.after(() => upstream.close());
        const { client, proxy } = await tunnelBench(t, { upstreamPort: upstream.port });
        const wire = client().write(`GET / HTTP/${version}\r\nhost: x\r\n\r\n`);
        await wire.until('part');
        upstream.sockets[0]!.resetAndDestroy();
        await wire.rest();
        await eventually(() => wire.error !== null, 'the reset');
        assert.equal((wire.error as NodeJS.ErrnoException).code, 'ECONNRESET');
        assert.equal(proxy.httpStat('downstream_rq_tx_reset'), 1);
      });
    }
  }

  test('at the end of a stop is logged as the work of this side', async (t) => {
    const upstream = await WireUpstream.answering(starts['until the end']);
    t.after(() => upstream.close());
    const { client, proxy, entries } = await tunnelBench(t, { upstreamPort: upstream.port });
    const wire = client().write('GET / HTTP/1.0\r\nhost: x\r\n\r\n');
    await wire.until('part');
    await proxy.dataPlane.shutdown(20);
    await wire.rest();
    await eventually(() => wire.error !== null, 'the reset');
    assert.equal((wire.error as NodeJS.ErrnoException).code, 'ECONNRESET');
    assert.deepEqual(await entries(), ['200 DC downstream_local_disconnect 0 4']);
  });
});

describe('a bug in the handling of a proxied connection', () => {
  for (const [side, owner, method] of [
    ['client', TcpProxyConnection, 'onBytes'],
    ['upstream', TcpProxyConnection, 'onUpstreamBytes'],
    ['upstream', TcpUpstream, 'onBytes'],
  ] as const) {
    test(`breaks both sides off: ${owner.name}.${method}`, async (t) => {
      const { wire, server } = await RAW_PATHS['the TCP proxy']!(t);
      const broken = t.mock.method(owner.prototype as unknown as Record<string, () => void>, method, () => {
        throw new Error('deliberate');
      });
      wire.socket.removeAllListeners('error');
      const ends = [peerEnd(server), peerEnd(wire.socket)];
      (side === 'client' ? wire.socket : server).write('x');
      assert.deepEqual(await Promise.all(ends), ['ECONNRESET', 'ECONNRESET']);
      assert.equal(broken.mock.callCount(), 1);
    });
  }
});

test('where there is no reset, on a pipe, what was broken off is closed', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-'));
  const upstream = await WireUpstream.start((socket) =>
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\n')),
  );
  const proxy = new DataPlaneFixture();
  t.after(async () => {
    await proxy.close();
    await upstream.close();
    rmSync(folder, { recursive: true });
  });
  proxy.cluster('web', [loopback(upstream.port)]);
  for (const filter of [tcpProxy('web'), httpManager([routeTo('web')])]) {
    const file = path.join(folder, filter.kind);
    await proxy.listen(filter, { kind: 'pipe', path: file, mode: 0o600 });
    const socket = connect(file);
    const closed = once(socket, 'close');
    socket.write(GET);
    await once(socket, 'data');
    upstream.sockets.at(-1)!.resetAndDestroy();
    await closed;
    await eventually(() => proxy.dataPlane.connectionCount === 0, 'the end of the connection');
  }
});
