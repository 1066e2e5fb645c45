// The upstream side alone: which memory a response is read into, and when that memory may serve again.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ResponseReceiver } from '../../../../../../src/data-plane/http/codec/upstream-stream.ts';
import { Cluster } from '../../../../../../src/data-plane/upstream/cluster.ts';
import { RetiredHosts } from '../../../../../../src/data-plane/upstream/retired-hosts.ts';
import { Framing, Method } from '../../../../../../src/wasm/http1.ts';
import { DataPlaneFixture, loopback } from '../../../../../support/data-plane.ts';
import { WireUpstream } from '../../../../../support/wire.ts';

const BODY_BYTES = 3_000_000;
const NO_BYTES = Buffer.alloc(0);

/** Takes a response, says whether its last bytes could be sent on, and notes where they lay. */
class Receiver implements ResponseReceiver {
  readonly awaitsUpgrade = false;
  readonly matchesUpstreamScheme = false;
  readonly upstreamWire = null;
  readonly requestFraming = Framing.NONE;
  readonly requestTrailers = null;
  readonly bufferLimitBytes = 1024 * 1024;
  readonly done = Promise.withResolvers<void>();
  bytes = 0;
  slabBytes = 0;
  readonly #takesLast: boolean;

  constructor(takesLast: boolean) {
    this.#takesLast = takesLast;
  }

  onInterimHead(): void {}

  onResponseHead(_bytes: Buffer, start: number, end: number): boolean {
    this.bytes += end - start;
    return true;
  }

  onResponseBody(_bytes: Buffer, start: number, end: number, isEnd: boolean, isSlab: boolean): boolean {
    this.bytes += end - start;
    if (isSlab) this.slabBytes += end - start;
    if (isEnd) setImmediate(this.done.resolve);
    return !isEnd || this.#takesLast;
  }

  onResponseTrailers(): void {}

  onUpstreamReset(failure: string): void {
    this.done.reject(new Error(failure));
  }

  onUpstreamDrain(): void {}
}

describe('a long response body', () => {
  const proxy = new DataPlaneFixture();
  const { context } = proxy;
  let upstream: WireUpstream;
  let cluster: Cluster;

  before(async () => {
    context.readMode = 'lean';
    upstream = await WireUpstream.answering(
      Buffer.concat([
        Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`),
        Buffer.alloc(BODY_BYTES),
      ]),
    );
    const snapshot = proxy.cluster('web', [loopback(upstream.port)]);
    cluster = new Cluster(context, snapshot);
    cluster.updateHosts(snapshot, new RetiredHosts(() => {}));
  });
  after(async () => {
    cluster.close();
    await proxy.close();
    await upstream.close();
  });

  async function fetch(receiver: Receiver): Promise<void> {
    cluster.chooseHost(null)!.pools.default.newStream({
      onStream(connection) {
        connection.start(receiver, Method.GET, 'GET / HTTP/1.1\r\nhost: x\r\n\r\n', NO_BYTES, 0, 0, true);
      },
      onPoolFailure: (failure) => receiver.done.reject(new Error(failure)),
    });
    await receiver.done.promise;
    assert.equal(receiver.bytes, BODY_BYTES);
    assert.ok(receiver.slabBytes > BODY_BYTES / 2);
    assert.equal(context.slabs.outstandingBytes, 0);
  }

  test('leaves its slab to others when its last bytes have been sent on', async () => {
    await fetch(new Receiver(true));
    assert.ok(context.slabs.freeBytes > 0);
  });

  test('takes its slab out of use when its last bytes still lie in it', async () => {
    const before = context.slabs.freeBytes;
    await fetch(new Receiver(false));
    assert.ok(context.slabs.freeBytes < before);
  });
});
