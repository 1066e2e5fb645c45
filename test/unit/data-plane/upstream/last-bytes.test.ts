// How long an upstream that takes nothing any more may take for its last bytes.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Http1ClientConnection } from '../../../../src/data-plane/http/codec/http1/client-connection.ts';
import type { ResponseReceiver } from '../../../../src/data-plane/http/codec/upstream-stream.ts';
import { TcpUpstream, type TcpUpstreamOwner } from '../../../../src/data-plane/tcp-proxy/tcp-upstream.ts';
import type { Cluster } from '../../../../src/data-plane/upstream/cluster.ts';
import type { PoolClient } from '../../../../src/data-plane/upstream/pool/connection-pool.ts';
import { Framing, Method } from '../../../../src/wasm/http1.ts';
import { streamPool } from '../../../support/upstream-request.ts';
import { type FakeUpstreamSocket, UpstreamWorkers } from '../../../support/upstream-workers.ts';

const HEAD = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n';
const ANSWER = 'HTTP/1.1 413 Payload Too Large\r\ncontent-length: 4\r\n\r\n';
const NO_BYTES = Buffer.alloc(0);
const SILENCE_MS = 1000;
/** Timers fire up to one tick late. */
const TICK_MS = 8;

interface Bench {
  readonly workers: UpstreamWorkers;
  readonly cluster: Cluster;
  readonly socket: () => FakeUpstreamSocket;
}

function bench(): Bench {
  const sockets: FakeUpstreamSocket[] = [];
  const workers = new UpstreamWorkers(1, (socket) => void sockets.push(socket));
  const cluster = workers.open(0, workers.cluster(1, { idleTimeoutMs: 0 }));
  return { workers, cluster, socket: () => sockets.at(-1)! };
}

/** Takes bytes until it is told not to. */
class Taker implements PoolClient, ResponseReceiver, TcpUpstreamOwner {
  readonly awaitsUpgrade = false;
  readonly matchesUpstreamScheme = false;
  readonly upstreamWire = null;
  readonly requestFraming = Framing.NONE;
  readonly requestTrailers = null;
  readonly bufferLimitBytes = 1024;
  takes = true;
  events: string[] = [];
  connection: Http1ClientConnection | null = null;

  onStream(connection: Http1ClientConnection): void {
    this.connection = connection;
    connection.start(this, Method.POST, HEAD, NO_BYTES, 0, 0, false);
  }

  onPoolFailure(failure: string): void {
    this.events.push(failure);
  }

  onInterimHead(): void {}

  onResponseHead(_bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    this.events.push(`head ${end - start}${isEnd ? ' end' : ''}`);
    return this.takes;
  }

  onResponseBody(_bytes: Buffer, start: number, end: number, isEnd: boolean): boolean {
    this.events.push(`body ${end - start}${isEnd ? ' end' : ''}`);
    return this.takes;
  }

  onResponseTrailers(): void {}

  onUpstreamReset(failure: string): void {
    this.events.push(failure);
  }

  onUpstreamConnected(): void {}
  onUpstreamConnectFailed(): void {}

  onUpstreamBytes(_bytes: Buffer, length: number): boolean {
    this.events.push(`body ${length}`);
    return this.takes;
  }

  onUpstreamEnd(): void {}
  onUpstreamDrain(): void {}

  onUpstreamClosed(error: NodeJS.ErrnoException | null): void {
    this.events.push(`closed ${error?.code}`);
  }
}

interface Opened {
  readonly resume: () => void;
  readonly end: () => void;
}

interface Kind {
  /** Opens a connection over which bytes go to the upstream. */
  readonly open: (bench: Bench, taker: Taker) => Opened;
  readonly first: string;
  readonly seen: string;
  readonly over: string;
}

const KINDS: Readonly<Record<string, Kind>> = {
  'of a request': {
    open: ({ cluster, socket }, taker) => {
      cluster.hosts[0]!.pools.default.newStream(taker);
      socket().accept();
      return { resume: () => taker.connection!.resume(), end: () => taker.connection!.abort(false) };
    },
    first: ANSWER,
    seen: 'head 0',
    over: 'connection termination',
  },
  'of proxied TCP': {
    open: ({ workers, cluster, socket }, taker) => {
      const context = workers.contexts[0]!;
      cluster.hosts[0]!.acquireConnection(cluster.breaker);
      const upstream = new TcpUpstream(context, cluster.hosts[0]!, taker, context.clock.monotonicMs(), cluster.breaker);
      socket().accept();
      return { resume: () => upstream.resume(), end: () => upstream.destroy() };
    },
    first: 'a',
    seen: 'body 1',
    over: 'closed ECONNRESET',
  },
};

for (const [name, { open, first, seen, over }] of Object.entries(KINDS)) {
  describe(`the last bytes of an upstream ${name}`, () => {
    test('are waited for a second', () => {
      const { workers, cluster, socket } = bench();
      const taker = new Taker();
      open({ workers, cluster, socket }, taker);
      socket().failSending();
      workers.clock.turn(SILENCE_MS - TICK_MS);
      assert.deepEqual(taker.events, []);
      workers.clock.turn(2 * TICK_MS);
      assert.deepEqual(taker.events, [over]);
      assert.equal(socket().isLive, false);
      assert.equal(workers.contexts[0]!.wheel.size, 0);
    });

    test('are of no interest once the connection is over', () => {
      const { workers, cluster, socket } = bench();
      const { end } = open({ workers, cluster, socket }, new Taker());
      socket().failSending();
      end();
      assert.equal(workers.contexts[0]!.wheel.size, 0);
      socket().failSending();
      assert.equal(workers.contexts[0]!.wheel.size, 0);
    });

    test('are waited for as long as some come', () => {
      const { workers, cluster, socket } = bench();
      const taker = new Taker();
      open({ workers, cluster, socket }, taker);
      socket().failSending();
      workers.clock.turn(SILENCE_MS - TICK_MS);
      socket().send(first);
      workers.clock.turn(SILENCE_MS - TICK_MS);
      socket().send('b');
      workers.clock.turn(SILENCE_MS - TICK_MS);
      assert.deepEqual(taker.events, [seen, 'body 1']);
      workers.clock.turn(2 * TICK_MS);
      assert.deepEqual(taker.events, [seen, 'body 1', over]);
    });

    test('are waited for while the client takes none', () => {
      const { workers, cluster, socket } = bench();
      const taker = new Taker();
      const { resume } = open({ workers, cluster, socket }, taker);
      socket().failSending();
      taker.takes = false;
      socket().send(first);
      workers.clock.turn(100 * SILENCE_MS);
      assert.deepEqual(taker.events, [seen]);
      resume();
      workers.clock.turn(SILENCE_MS - TICK_MS);
      assert.deepEqual(taker.events, [seen]);
      workers.clock.turn(2 * TICK_MS);
      assert.deepEqual(taker.events, [seen, over]);
    });

    test('are waited for while the client takes none, also when it stopped before', () => {
      const { workers, cluster, socket } = bench();
      const taker = new Taker();
      open({ workers, cluster, socket }, taker);
      taker.takes = false;
      socket().send(first);
      socket().failSending();
      workers.clock.turn(100 * SILENCE_MS);
      assert.deepEqual(taker.events, [seen]);
    });
  });
}

test('a response that is complete ends the wait, and the connection', async () => {
  const { workers, cluster, socket } = bench();
  const taker = new Taker();
  cluster.hosts[0]!.pools.default.newStream(taker);
  socket().accept();
  // As if the request had been sent in full.
  taker.connection!.send(NO_BYTES, 0, 0, true);
  socket().failSending();
  socket().send(`${ANSWER}last`);
  assert.deepEqual(taker.events, ['head 4 end']);
  assert.equal(socket().isLive, false);
  assert.equal(streamPool(cluster.hosts[0]!).size, 0);
  assert.equal(workers.contexts[0]!.wheel.size, 0);
  workers.clock.turn(2 * SILENCE_MS);
  assert.deepEqual(taker.events, ['head 4 end']);
});
