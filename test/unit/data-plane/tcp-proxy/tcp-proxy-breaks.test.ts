// What breaks a proxied connection off without a word from either side: a bug, and a client that has left while nothing is
// read from it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PausedPeers } from '../../../../src/data-plane/network/paused-peers.ts';
import { TcpProxyBench } from '../../../support/tcp-proxy-bench.ts';
import { peerEnd } from '../../../support/wire.ts';

describe('a proxied connection', () => {
  test('that meets a bug is broken off on both sides, and told of', async (t) => {
    const bench = new TcpProxyBench(t, {});
    const wire = await bench.client();
    bench.upstream.accept();
    const told = t.mock.method(bench.context, 'logFault', () => {});
    const bug = new Error('deliberate');
    t.mock.method(bench.context.writer, 'owned', () => {
      throw bug;
    });
    wire.socket.removeAllListeners('error');
    const ended = peerEnd(wire.socket);
    wire.write('x');
    await bench.untilClosed();
    assert.equal(await ended, 'ECONNRESET');
    assert.ok(bench.upstream.wasReset);
    assert.deepEqual(told.mock.calls[0]!.arguments, ['a proxied connection', bug]);
  });

  for (const state of ['early', 'held back'] as const) {
    test(`whose client has left is broken off when that was a reset, and not for an end: ${state}`, async (t) => {
      const paused = t.mock.method(PausedPeers.prototype, 'pause');
      const bench = new TcpProxyBench(t, {});
      const wire = await bench.client();
      if (state === 'held back') bench.upstream.accept();
      bench.upstream.isSlow = true;
      wire.write('x'.repeat(1000));
      await bench.until(() => paused.mock.callCount() > 0, 'the pause');
      const [{ owner }] = paused.mock.calls[0]!.arguments;
      owner.onPausedPeerGone(false);
      assert.ok(bench.upstream.isLive);
      assert.equal(bench.closed, 0);
      owner.onPausedPeerGone(true);
      assert.ok(!bench.upstream.isLive);
      // What does not stand yet cannot be reset.
      assert.equal(bench.upstream.wasReset, state === 'held back');
      assert.equal(bench.closed, 1);
      await wire.rest();
      await bench.untilClosed();
    });
  }

  test('whose client has ended its side is broken off when that resets it then', async (t) => {
    const ended = t.mock.method(PausedPeers.prototype, 'ended');
    const bench = new TcpProxyBench(t, {});
    const wire = await bench.client();
    bench.upstream.accept();
    wire.socket.end();
    await bench.until(() => bench.upstream.writableEnded, 'the end');
    assert.equal(ended.mock.callCount(), 1);
    ended.mock.calls[0]!.arguments[0].owner.onPausedPeerGone(true);
    assert.ok(bench.upstream.wasReset);
    assert.equal(bench.closed, 1);
    await wire.rest();
    await bench.untilClosed();
  });
});
