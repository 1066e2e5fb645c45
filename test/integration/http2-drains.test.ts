// Drains of the real program whose clients speak HTTP/2, with prior knowledge and over TLS: what they are told, which of their
// requests are answered, and what becomes of those that have only just come.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { ErrorCode, FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import { untilEqual } from '../support/eventually.ts';
import { http2Bench, settledClient, silentUpstream } from '../support/http2-bench.ts';
import { FrameClient } from '../support/http2-clients.ts';
import {
  confirmDrain,
  ended,
  get,
  goaways,
  HaltedSocket,
  Http2Program,
  readSoFar,
  WAYS,
} from '../support/http2-program.ts';
import { headers } from '../support/http2-session.ts';

/** Of the GOAWAY that only announces another. */
const ANY_STREAM = 2 ** 31 - 1;
/** Longer than any test: what waits for it fails. */
const PATIENT = ['--shutdown-grace-s', '80'];
const AT_ONCE = ['--drain-strategy', 'immediate', '--drain-time-s', '60'];
const DRAIN_MS = 60_000;
const FIRST_LISTENER = 1;

/** The client has been told in two steps, between which it was served, and its next stream is not taken. */
async function toldInTwoSteps(client: FrameClient, streamId: number): Promise<void> {
  await client.ofType(FrameType.GOAWAY);
  assert.deepEqual(goaways(client), [ANY_STREAM]);
  client.send(get(streamId, '/direct'));
  assert.equal(await ended(client, streamId), 'direct');
  await confirmDrain(client);
  assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
  assert.deepEqual(goaways(client), [ANY_STREAM, streamId]);
}

for (const way of WAYS) {
  describe(`clients of HTTP/2, ${way},`, () => {
    test('have their streams answered and no more of them taken when the process ends', async (t) => {
      const program = await Http2Program.start(t, { args: PATIENT });
      const client = await program.settled(way);
      client.send(get(3, '/'), get(5, '/'));
      await program.asked(2);
      const end = program.weir.stop();
      await toldInTwoSteps(client, 7);
      // Whoever is told of the last stream knows that this one was not looked at.
      client.send(get(9, '/direct'));
      await readSoFar(client, 'behind');
      program.answer();
      assert.deepEqual([await ended(client, 3), await ended(client, 5)], ['ok', 'ok']);
      await client.ended();
      assert.deepEqual(
        client.frames.filter(({ streamId }) => streamId === 9),
        [],
      );
      assert.equal((await end).code, 0);
    });

    test('go on as they like when listeners stop, which take nobody else', async (t) => {
      const program = await Http2Program.start(t, { args: PATIENT });
      const client = await program.settled(way);
      client.send(get(3, '/'));
      await program.asked(1);
      assert.equal(await program.order('/drain_listeners'), 200);
      await program.untilRefused(way);
      client.send(get(5, '/direct'));
      assert.equal(await ended(client, 5), 'direct');
      program.answer();
      assert.equal(await ended(client, 3), 'ok');
      assert.deepEqual(goaways(client), []);
    });

    test('are sent away with their next answer by a graceful drain', async (t) => {
      const program = await Http2Program.start(t, { args: AT_ONCE });
      const client = await program.settled(way);
      client.send(get(3, '/'));
      await program.asked(1);
      assert.equal(await program.order('/drain_listeners?graceful'), 200);
      // The order is on its way to the worker: until it has come, answers say nothing.
      let streamId = 5;
      for (; goaways(client).length === 0; streamId += 2) {
        client.send(get(streamId, '/direct'));
        assert.equal(await ended(client, streamId), 'direct');
        await readSoFar(client, `${streamId}`);
      }
      await toldInTwoSteps(client, streamId);
      program.answer();
      assert.equal(await ended(client, 3), 'ok');
      await client.ended();
      await program.weir.untilStat('http.ingress.downstream_cx_drain_close', 1);
    });

    test('are sent away by and by, by a drain that takes its time, also when they ask for nothing', async (t) => {
      const listener = { traffic_direction: 'INBOUND' };
      const program = await Http2Program.start(t, { args: ['--drain-time-s', '2'], listener });
      const idle = await program.settled(way);
      const busy = await program.settled(way);
      busy.send(get(3, '/'));
      await program.asked(1);
      assert.equal(await program.order('/drain_listeners?graceful&inboundonly&skip_exit'), 200);
      await toldInTwoSteps(idle, 3);
      await idle.ended();
      await toldInTwoSteps(busy, 5);
      program.answer();
      assert.equal(await ended(busy, 3), 'ok');
      await busy.ended();
      await program.weir.untilStat('http.ingress.downstream_cx_drain_close', 2);
    });

    test('are sent away one by one while health checks fail, and stay again once they do not', async (t) => {
      const program = await Http2Program.start(t);
      const isSentAway = async (): Promise<boolean> => {
        const client = await program.settled(way);
        await readSoFar(client, 'any more');
        const told = goaways(client).length > 0;
        client.socket.destroy();
        return told;
      };
      const resident = await program.settled(way);
      assert.equal(await program.order('/healthcheck/fail'), 200);
      await untilEqual(true, isSentAway, 'the end of connections');
      resident.send(get(3, '/direct'));
      assert.equal(await ended(resident, 3), 'direct');
      await toldInTwoSteps(resident, 5);
      await resident.ended();
      assert.equal(await program.order('/healthcheck/ok'), 200);
      await untilEqual(false, isSentAway, 'the end of connections');
    });
  });
}

describe('when a listener has gone for as long as its drain takes, a client of HTTP/2 whose turn comes last,', () => {
  const stopped = async (t: TestContext, requests: Buffer[]): Promise<FrameClient> => {
    const { port, asked } = await silentUpstream(t);
    const here = await http2Bench(t, {}, { upstreamPort: port, route: { timeoutMs: 0 }, chance: DRAIN_MS - 1 });
    const client = await settledClient(t, here);
    if (requests.length > 0) {
      client.send(...requests);
      await asked;
    }
    const drain = { strategy: 'gradual', elapsedMs: 0, durationMs: DRAIN_MS } as const;
    void here.proxy.dataPlane.stopListener(FIRST_LISTENER, { drain });
    here.clock.turn(DRAIN_MS - 100);
    await readSoFar(client, 'served');
    assert.deepEqual(goaways(client), []);
    here.clock.turn(200);
    await client.ended();
    return client;
  };

  test('that has asked for nothing is told which streams were the last', async (t) => {
    const client = await stopped(t, []);
    assert.deepEqual(goaways(client), [ANY_STREAM, 1]);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
  });

  test('that waits for an answer is told that its stream was taken', async (t) => {
    const client = await stopped(t, [headers(3)]);
    assert.deepEqual(goaways(client), [ANY_STREAM, 3]);
  });
});

describe('when the process ends, a client', () => {
  /** Sends the beginning of its ClientHello, and the rest when that is released. */
  const begun = async (program: Http2Program, connections = 1): Promise<HaltedSocket> => {
    const socket = new HaltedSocket(program.port('tls'), 20);
    await program.weir.untilStat('listener.tls.downstream_cx_total', connections);
    return socket;
  };

  test('in the middle of its handshake is let in, and has its request answered over HTTP/2', async (t) => {
    const program = await Http2Program.start(t, { args: PATIENT });
    const silent = connect(program.port('tls'), '127.0.0.1').resume();
    const socket = await begun(program, 2);
    const secured = program.secure(socket);
    const end = program.weir.stop();
    // Who has not begun until then is not waited for.
    await closing(silent);
    socket.release();
    assert.equal(await Promise.race([once(secured, 'secureConnect').then(() => 'secure'), closing(secured)]), 'secure');
    const client = new FrameClient(t, secured);
    client.acknowledge();
    client.send(get(1, '/direct'));
    assert.equal(await ended(client, 1), 'direct');
    await confirmDrain(client);
    assert.deepEqual(goaways(client).at(0), ANY_STREAM);
    await client.ended();
    assert.equal((await end).code, 0);
  });

  test('in the middle of its handshake is let in, and has its request answered over HTTP/1.1', async (t) => {
    const program = await Http2Program.start(t, { args: PATIENT });
    const socket = await begun(program);
    const secured = program.secure(socket, ['http/1.1']);
    const end = program.weir.stop();
    await program.untilRefused('tls');
    socket.release();
    let answer = '';
    secured.setEncoding('latin1').on('data', (text: string) => (answer += text));
    secured.write('GET /direct HTTP/1.1\r\nhost: a.example\r\n\r\n');
    await Promise.race([once(secured, 'end'), closing(secured)]);
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n.*\r\nconnection: close\r\n.*direct$/is);
    secured.end();
    assert.equal((await end).code, 0);
  });

  test('that says nothing, in its handshake or behind it, is not waited for', async (t) => {
    const program = await Http2Program.start(t, { args: PATIENT });
    const silent = connect(program.port('tls'), '127.0.0.1').resume();
    const halted = await begun(program, 2);
    const late = program.secure(halted);
    const ends = [silent, late.resume()].map(closing);
    const startMs = performance.now();
    const end = program.weir.stop();
    await program.untilRefused('tls');
    halted.release();
    await Promise.all(ends);
    assert.equal((await end).code, 0);
    // Far from the grace of eighty seconds.
    assert.ok(performance.now() - startMs < 40_000);
  });
});

async function closing(socket: Socket): Promise<void> {
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('close', resolve));
}
