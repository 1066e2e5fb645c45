// What filter chains offer to network filters: connections that wait, bytes that are held, clients that leave meanwhile.
// By bytes on the wire, in both ways of reading sockets.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { NetworkFilterRegistry } from '../../src/data-plane/index.ts';
import type { TerminalFilterSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, httpManager, loopback, routeTo, tcpProxy } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { filterChain } from '../support/listeners.ts';
import { networkFilter, scriptedFilter, scriptedTerminal } from '../support/network-filters.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const MEBIBYTE = 1024 * 1024;
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const REQUEST = 'GET /one HTTP/1.1\r\nhost: a\r\n\r\n';
const TCP = tcpProxy('up');
const HTTP = httpManager([routeTo('up')]);

interface Options {
  readonly readMode: 'lean' | 'events';
  readonly registry: NetworkFilterRegistry;
  /** Ends the chain; a TCP proxy by default. */
  readonly terminal?: TerminalFilterSettings;
}

/** The filters of a registry in their order, before a terminal one. */
async function chain(t: TestContext, upstream: WireUpstream, { readMode, registry, terminal = TCP }: Options) {
  const proxy = new DataPlaneFixture({ readMode, networkFilters: registry });
  proxy.cluster('up', [loopback(upstream.port)]);
  const names = Object.keys(registry).filter((name) => !registry[name]!.isTerminal);
  const networkFilters = names.map((name) => networkFilter(name));
  const [port] = await proxy.listenWith({ filterChains: [filterChain(terminal, { networkFilters })] });
  const clients: WireClient[] = [];
  t.after(async () => {
    for (const client of clients) client.close();
    await proxy.close();
    await upstream.close();
  });
  return {
    proxy,
    client: () => {
      const made = new WireClient(port!);
      clients.push(made);
      return made;
    },
  };
}

/** Sends back what it gets, and its end behind it. */
async function echoing(): Promise<WireUpstream> {
  return await WireUpstream.start((socket) => {
    socket.on('data', (chunk) => socket.write(chunk));
    socket.on('end', () => socket.end());
  });
}

async function answering(): Promise<WireUpstream> {
  return await WireUpstream.answering(OK);
}

/** Counts what comes from now on; resolves when so much is there. */
async function countBytes({ socket }: WireClient, wanted: number): Promise<void> {
  let count = 0;
  const counted = Promise.withResolvers<void>();
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    count += chunk.length;
    if (count >= wanted) counted.resolve();
  });
  socket.once('close', () => counted.reject(new Error(`closed behind ${count} bytes`)));
  await counted.promise;
  assert.equal(count, wanted);
}

const stop = (): 'stop' => 'stop';
const goOn = (): 'continue' => 'continue';

for (const readMode of ['lean', 'events'] as const) {
  describe(`network filters, read ${readMode}`, () => {
    test('hold a connection until all of them have let it go on, in their order', async (t) => {
      const first = scriptedFilter(() => ({ onNewConnection: stop }));
      const second = scriptedFilter(() => ({ onNewConnection: stop }));
      const upstream = await echoing();
      const registry = { first: first.kind, second: second.kind };
      const { proxy, client } = await chain(t, upstream, { readMode, registry });
      const held = client().write('early');
      await eventually(() => first.filters.length === 1, 'the filter');
      await eventually(() => proxy.listenerStat('downstream_cx_active') === 1, 'open');
      assert.equal(proxy.dataPlane.connectionCount, 1);
      second.filters[0]!.callbacks.continueReading();
      assert.equal(upstream.sockets.length, 0);
      first.filters[0]!.callbacks.continueReading();
      first.filters[0]!.callbacks.continueReading();
      assert.equal(proxy.tcpStat('downstream_cx_total'), 0);
      second.filters[0]!.callbacks.continueReading();
      assert.equal(await held.until('early'), 'early');
      held.write('late');
      assert.equal(await held.until('late'), 'late');
      assert.equal(proxy.dataPlane.connectionCount, 1);
      held.close();
      await eventually(() => second.filters[0]!.closes === 1, 'closed');
      assert.equal(first.filters[0]!.closes, 1);
      assert.equal(proxy.listenerStat('downstream_cx_active'), 0);
    });

    test('may let requests of HTTP wait, whose bytes have come before', async (t) => {
      const gate = scriptedFilter(() => ({ onNewConnection: stop }));
      const { client } = await chain(t, await answering(), { readMode, registry: { gate: gate.kind }, terminal: HTTP });
      const held = client().write(REQUEST);
      await eventually(() => gate.filters.length === 1, 'the filter');
      await new Promise(setImmediate);
      gate.filters[0]!.callbacks.continueReading();
      assert.equal((await held.response()).body, 'ok');
      held.write(REQUEST);
      assert.equal((await held.response()).body, 'ok');
    });

    test('let go on at once what they need not hold, even from within their methods', async (t) => {
      const plain = scriptedFilter(() => ({}));
      const within = scriptedFilter(({ callbacks }) => ({
        onNewConnection() {
          callbacks.continueReading();
          return 'stop';
        },
      }));
      const registry = { plain: plain.kind, within: within.kind };
      const { client } = await chain(t, await echoing(), { readMode, registry });
      const passing = client().write('x');
      assert.equal(await passing.until('x'), 'x');
    });

    test('pass on the end of a client that has ended while it waited', async (t) => {
      const gate = scriptedFilter(() => ({ onNewConnection: stop }));
      const { client } = await chain(t, await echoing(), { readMode, registry: { gate: gate.kind } });
      const silent = client();
      silent.socket.end();
      const brief = client();
      brief.socket.end('brief');
      await eventually(() => gate.filters.length === 2, 'the filters');
      await new Promise((resolve) => setTimeout(resolve, 50));
      for (const { callbacks } of gate.filters) callbacks.continueReading();
      assert.equal(await brief.rest(), 'brief');
      assert.equal(await silent.rest(), '');
    });

    test('read no more of a waiting client than one read brings', async (t) => {
      const gate = scriptedFilter(() => ({ onNewConnection: stop }));
      const { client } = await chain(t, await echoing(), { readMode, registry: { gate: gate.kind } });
      const eager = client();
      const all = Buffer.alloc(32 * MEBIBYTE, 'x');
      eager.socket.write(all);
      await eventually(() => gate.filters.length === 1, 'the filter');
      // What the systems of both sides hold is a few MiB; the rest waits at the client.
      await eventually(() => eager.socket.bytesWritten > 0, 'sent');
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.ok(eager.socket.writableLength > 16 * MEBIBYTE, String(eager.socket.writableLength));
      gate.filters[0]!.callbacks.continueReading();
      await countBytes(eager, all.length);
    });

    test('hear of a client that resets while it waits, and of one whose chain goes', async (t) => {
      const gate = scriptedFilter(() => ({ onNewConnection: stop }));
      const upstream = await echoing();
      const { proxy, client } = await chain(t, upstream, { readMode, registry: { gate: gate.kind } });
      const leaving = client().write('x');
      await eventually(() => gate.filters.length === 1, 'the filter');
      leaving.socket.resetAndDestroy();
      await eventually(() => gate.filters[0]!.closes === 1, 'told');
      const staying = client();
      await eventually(() => gate.filters.length === 2, 'the filter');
      await proxy.close();
      assert.equal(await staying.rest(), '');
      assert.equal(gate.filters[1]!.closes, 1);
      gate.filters[1]!.callbacks.continueReading();
      gate.filters[1]!.callbacks.close();
      assert.deepEqual([upstream.sockets.length, proxy.listenerStat('downstream_cx_active')], [0, 0]);
    });

    test('end a connection before the terminal filter has it, and behind that', async (t) => {
      const gate = scriptedFilter(() => ({ onNewConnection: stop }));
      const upstream = await echoing();
      const { proxy, client } = await chain(t, upstream, { readMode, registry: { gate: gate.kind } });
      const [refused, cut] = [client(), client()];
      await eventually(() => gate.filters.length === 2, 'the filters');
      gate.filters[0]!.callbacks.close();
      gate.filters[1]!.callbacks.continueReading();
      const opened = await Promise.race([refused.rest().then(() => cut), cut.rest().then(() => refused)]);
      opened.write('x');
      assert.equal(await opened.until('x'), 'x');
      gate.filters[1]!.callbacks.close();
      assert.equal(await opened.rest(), '');
      await eventually(() => proxy.listenerStat('downstream_cx_active') === 0, 'closed');
      assert.deepEqual(
        gate.filters.map(({ closes }) => closes),
        [1, 1],
      );
    });

    test('cost only their connection when they throw', async (t) => {
      let throws = true;
      const faulty = scriptedFilter(() => ({
        onNewConnection() {
          if (throws) throw new Error('a bug');
          return 'continue';
        },
      }));
      const { proxy, client } = await chain(t, await echoing(), { readMode, registry: { faulty: faulty.kind } });
      assert.equal(await client().rest(), '');
      assert.equal(proxy.listenerStat('downstream_cx_active'), 0);
      throws = false;
      assert.equal(await client().write('x').until('x'), 'x');
    });

    for (const [name, terminal, upstreamOf] of [
      ['a TCP proxy', TCP, echoing],
      ['a connection manager', HTTP, answering],
    ] as const) {
      test(`see the bytes before ${name}, and hold them`, async (t) => {
        let answer: 'continue' | 'stop' = 'stop';
        const reader = scriptedFilter(() => ({ onData: () => answer }), true);
        const behind = scriptedFilter(() => ({ onData: goOn }), true);
        const registry = { reader: reader.kind, behind: behind.kind };
        const { client } = await chain(t, await upstreamOf(), { readMode, registry, terminal });
        const wire = client().write(REQUEST);
        await eventually(() => reader.filters[0]?.seen.length === 1, 'seen');
        assert.deepEqual(behind.filters[0]!.seen, []);
        answer = 'continue';
        reader.filters[0]!.callbacks.continueReading();
        const answered = terminal === TCP ? REQUEST : '\r\n\r\nok';
        await wire.until(answered);
        assert.equal(behind.filters[0]!.seen.join(''), REQUEST);
        wire.write(REQUEST);
        await wire.until(answered);
        assert.equal(reader.filters[0]!.seen.join(''), REQUEST + REQUEST);
        wire.socket.end();
        assert.equal(await wire.rest(), '');
        assert.equal(behind.filters[0]!.seen.join(''), `${REQUEST}${REQUEST}$`);
      });
    }

    test('are not overrun by a client whose bytes they hold', async (t) => {
      const reader = scriptedFilter(() => ({ onData: stop }), true);
      const { client } = await chain(t, await echoing(), { readMode, registry: { reader: reader.kind } });
      const eager = client();
      const all = Buffer.alloc(32 * MEBIBYTE, 'y');
      eager.socket.write(all);
      await eventually(() => reader.filters[0]?.seen.length === 1, 'seen');
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.ok(eager.socket.writableLength > 16 * MEBIBYTE, String(eager.socket.writableLength));
      assert.equal(reader.filters[0]!.seen.length, 1);
      let isOver = false;
      const back = countBytes(eager, all.length).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        reader.filters[0]!.callbacks.continueReading();
        await new Promise(setImmediate);
      }
      await back;
    });

    test('may end a chain: they read, answer, wait until their client takes it, and end', async (t) => {
      const all = Buffer.alloc(16 * MEBIBYTE, 'z');
      const source = scriptedTerminal(({ callbacks }) => ({
        onData(_bytes, isEnd) {
          if (isEnd) callbacks.end();
          else if (!callbacks.write(Buffer.from(all))) return 'stop';
          return 'continue';
        },
        onWritable: () => callbacks.continueReading(),
      }));
      const terminal = { kind: 'extension', name: 'source', settings: null } as const;
      const registry = { source: source.kind };
      const { proxy, client } = await chain(t, await echoing(), { readMode, registry, terminal });
      const wire = client().write('1');
      await countBytes(wire, all.length);
      wire.write('2');
      await countBytes(wire, all.length);
      wire.socket.end();
      assert.equal(await wire.rest(), '');
      assert.equal(source.filters[0]!.seen.join(''), '12$');
      await eventually(() => proxy.listenerStat('downstream_cx_active') === 0, 'closed');
      assert.equal(source.filters[0]!.closes, 1);
    });

    test('may end a chain with what their client gets whole, whatever it sends meanwhile', async (t) => {
      const all = Buffer.alloc(MEBIBYTE, 'w');
      const greeting = scriptedTerminal(({ callbacks }) => ({
        onNewConnection() {
          callbacks.write(Buffer.from(all));
          callbacks.finish();
          return 'continue';
        },
      }));
      const terminal = { kind: 'extension', name: 'greeting', settings: null } as const;
      const { proxy, client } = await chain(t, await echoing(), {
        readMode,
        registry: { greeting: greeting.kind },
        terminal,
      });
      const wire = client().write('unasked');
      assert.equal((await wire.rest()).length, all.length);
      await eventually(() => proxy.listenerStat('downstream_cx_active') === 0, 'closed');
      assert.equal(greeting.filters[0]!.closes, 1);
    });
  });
}
