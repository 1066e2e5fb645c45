// Which requests of an HTTP/2 client a connection still takes that drains: all those that a client began before it could know of
// the drain, as far as the grace behind its answer to the PING allows, and none behind the second GOAWAY.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FrameFlag, FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import { direct, http2Bench, settledClient } from '../support/http2-bench.ts';
import type { FrameClient } from '../support/http2-clients.ts';
import { confirmDrain, DRAIN_GRACE_MS, DRAIN_LATE_MS, ended, goaways, readSoFar } from '../support/http2-program.ts';
import { frame } from '../support/http2-session.ts';

const ANY_STREAM = 2 ** 31 - 1;
const DRAIN_TIMEOUT_MS = 500;
const IDLE_MS = 1000;

type Step = { readonly act: 'ask' | 'confirm' } | { readonly act: 'wait'; readonly forMs: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.constant<Step>({ act: 'ask' }),
  fc.constant<Step>({ act: 'confirm' }),
  fc.record({ act: fc.constant('wait' as const), forMs: fc.constantFrom(1, 20, 45, 95, 130, 480) }),
);

async function drainPing(client: FrameClient): Promise<Buffer> {
  const ping = await client.find(({ type, flags }) => type === FrameType.PING && (flags & FrameFlag.ACK) === 0);
  return ping!.payload;
}

test('takes what a client asks for in the grace behind its answer, and however often it answers no longer', async (t) => {
  // The drain begins with the end of the idle time, which is the same for all.
  const here = await http2Bench(t, { idleTimeoutMs: IDLE_MS, drainTimeoutMs: DRAIN_TIMEOUT_MS });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const client = await settledClient(t, here);
      here.clock.turn(IDLE_MS + DRAIN_LATE_MS);
      const ping = await drainPing(client);
      let sinceMs = 0;
      let endMs = DRAIN_TIMEOUT_MS - DRAIN_LATE_MS;
      let lastTaken = 1;
      let streamId = 1;
      for (const now of steps) {
        if (now.act === 'wait') {
          here.clock.turn(now.forMs);
          sinceMs += now.forMs;
          // Who sends to a connection that has been closed might read no more of what it said.
          if (sinceMs > endMs + 2 * DRAIN_LATE_MS) await client.goaway();
          continue;
        }
        // In these moments either is right.
        if (sinceMs >= endMs && sinceMs <= endMs + 2 * DRAIN_LATE_MS) break;
        const isOver = sinceMs > endMs;
        if (now.act === 'confirm') {
          client.send(frame(FrameType.PING, FrameFlag.ACK, 0, ping));
          await readSoFar(client, 'confirmed');
          endMs = Math.min(endMs, sinceMs + DRAIN_GRACE_MS);
          continue;
        }
        streamId += 2;
        client.send(direct(streamId));
        await readSoFar(client, `asked ${streamId}`);
        if (isOver) continue;
        assert.equal(await ended(client, streamId), 'direct');
        lastTaken = streamId;
      }
      here.clock.turn(DRAIN_TIMEOUT_MS + DRAIN_LATE_MS);
      await client.ended();
      const [first, last, ...none] = goaways(client);
      assert.deepEqual([first, none], [ANY_STREAM, []]);
      assert.ok(last === lastTaken, `${last} is said to be the last, ${lastTaken} was the last that was answered`);
      // Nobody is told of a stream that it was refused: the GOAWAY has said so.
      assert.equal(
        client.frames.find(({ type }) => type === FrameType.RST_STREAM),
        undefined,
      );
    }),
    { numRuns: 60 },
  );
});

test('takes what comes in the same packet as the answer', async (t) => {
  const here = await http2Bench(t, { idleTimeoutMs: IDLE_MS });
  const client = await settledClient(t, here);
  here.clock.turn(IDLE_MS + DRAIN_LATE_MS);
  client.send(frame(FrameType.PING, FrameFlag.ACK, 0, await drainPing(client)), direct(3), direct(5));
  assert.deepEqual([await ended(client, 3), await ended(client, 5)], ['direct', 'direct']);
  here.clock.turn(DRAIN_GRACE_MS + DRAIN_LATE_MS);
  await client.ended();
  assert.deepEqual(goaways(client), [ANY_STREAM, 5]);
});

test('ends when the grace is over, and a drain that has less time than that waits no longer than it has', async (t) => {
  const here = await http2Bench(t, { idleTimeoutMs: IDLE_MS, drainTimeoutMs: 40 });
  const client = await settledClient(t, here);
  here.clock.turn(IDLE_MS + DRAIN_LATE_MS);
  await confirmDrain(client);
  await readSoFar(client, 'confirmed');
  here.clock.turn(40 + DRAIN_LATE_MS);
  await client.ended();
  assert.deepEqual(goaways(client), [ANY_STREAM, 1]);
});
