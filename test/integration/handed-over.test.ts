// Connections that one listener accepts and another one owns. A PROXY header says where they were meant to go.

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { ListenerSettings, ListenerSnapshot } from '../../src/snapshot/index.ts';
import { clientHello } from '../support/client-hello.ts';
import { DataPlaneFixture, loopback, tcpProxy } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { filterChain, MATCHES_ALL, PROXY_PROTOCOL, TLS_INSPECTOR } from '../support/listeners.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

type Limits = Partial<Pick<ListenerSnapshot, 'globalLimit' | 'limit'>>;

const meantFor = (ip: string, port: number): string => `PROXY TCP4 192.0.2.1 ${ip} 56324 ${port}\r\n`;
const at = (ip: string, port: number): NonNullable<ListenerSettings['addresses']>[0] => ({ kind: 'ip', ip, port });

/** The id that the fixture gives its first listener. */
const FIRST_ID = 1;

class Bench {
  readonly #t: TestContext;
  readonly proxy: DataPlaneFixture;

  constructor(t: TestContext, readMode: 'lean' | 'events' = 'lean') {
    this.#t = t;
    this.proxy = new DataPlaneFixture({ readMode });
    t.after(() => this.proxy.close());
  }

  /** A listener whose chain leads to an upstream that says `name`, and then what it hears. @returns its port. */
  async listener(name: string, settings: Partial<ListenerSettings>, limits: Limits = {}): Promise<number> {
    const upstream = await WireUpstream.start((socket) => {
      socket.write(`${name}:`);
      socket.pipe(socket);
    });
    this.#t.after(() => upstream.close());
    this.proxy.cluster(name, [loopback(upstream.port)]);
    const [port] = await this.proxy.listenWith({ filterChains: [filterChain(tcpProxy(name))], ...settings }, limits);
    return port!;
  }

  /** One that accepts what it hands over. */
  front(settings: Partial<ListenerSettings> = {}, limits: Limits = {}): Promise<number> {
    return this.listener('front', { handsOver: true, listenerFilters: [PROXY_PROTOCOL], ...settings }, limits);
  }

  client(port: number): WireClient {
    const client = new WireClient(port);
    client.socket.setNoDelay(true);
    this.#t.after(() => client.close());
    return client;
  }

  /** Who answers to a client that begins so. */
  async answerTo(port: number, start: string): Promise<string> {
    const client = this.client(port).write(`${start}hello`);
    const answer = await client.until('hello');
    client.close();
    return answer;
  }
}

for (const readMode of ['lean', 'events'] as const) {
  describe(`a connection that is meant for another listener, reading by ${readMode}`, () => {
    test('is handed over to the one that owns the address, or the port of all addresses; others stay', async (t) => {
      const bench = new Bench(t, readMode);
      const front = await bench.front();
      await bench.listener('owner', { bindsToPort: false, addresses: [at('10.0.0.1', 80)] });
      await bench.listener('any', { bindsToPort: false, addresses: [at('0.0.0.0', 80)] });
      assert.equal(await bench.answerTo(front, meantFor('10.0.0.1', 80)), 'owner:hello');
      assert.equal(await bench.answerTo(front, meantFor('10.0.0.2', 80)), 'any:hello');
      assert.equal(await bench.answerTo(front, meantFor('10.0.0.1', 81)), 'front:hello');
      assert.equal(bench.proxy.listenerStat('downstream_cx_total'), 3);
    });

    test('meets the filter chain of its owner that the name decides which it has asked for', async (t) => {
      const bench = new Bench(t, readMode);
      const front = await bench.front({ listenerFilters: [PROXY_PROTOCOL, TLS_INSPECTOR] });
      await bench.listener('owner', {
        bindsToPort: false,
        addresses: [at('10.0.0.1', 443)],
        filterChains: [filterChain(tcpProxy('owner'), { match: { ...MATCHES_ALL, serverNames: ['a.test'] } })],
      });
      const hello = clientHello({ serverName: 'a.test' }).toString('latin1');
      const client = bench.client(front).write(Buffer.from(meantFor('10.0.0.1', 443) + hello, 'latin1'));
      assert.equal(await client.until(hello), `owner:${hello}`);
    });

    test('meets the listener filters of its owner, with all bytes behind those of the first, also in pieces', async (t) => {
      const bench = new Bench(t, readMode);
      const front = await bench.front();
      await bench.listener('owner', {
        bindsToPort: false,
        addresses: [at('10.0.0.1', 80)],
        listenerFilters: [PROXY_PROTOCOL],
      });
      const start = meantFor('10.0.0.1', 80) + meantFor('10.0.0.9', 9);
      assert.equal(await bench.answerTo(front, start), 'owner:hello');
      const slow = bench.client(front);
      for (const byte of `${start}hello`) {
        slow.write(byte);
        await new Promise(setImmediate);
      }
      assert.equal(await slow.until('hello'), 'owner:hello');
      assert.equal(bench.proxy.listenerStat('downstream_pre_cx_active'), 0);
    });

    test('is handed over once', async (t) => {
      const bench = new Bench(t, readMode);
      const front = await bench.front();
      const rest = { bindsToPort: false, handsOver: true, listenerFilters: [PROXY_PROTOCOL] };
      await bench.listener('second', { ...rest, addresses: [at('10.0.0.1', 80)] });
      await bench.listener('third', { ...rest, addresses: [at('10.0.0.2', 80)] });
      const start = meantFor('10.0.0.1', 80) + meantFor('10.0.0.2', 80);
      assert.equal(await bench.answerTo(front, start), 'second:hello');
    });
  });
}

describe('a listener that is handed connections', () => {
  test('may accept some itself, and is nobody to hand over to without a listener that does', async (t) => {
    const bench = new Bench(t);
    const own = await bench.listener('owner', {});
    const front = await bench.front();
    const plain = await bench.listener('plain', { listenerFilters: [PROXY_PROTOCOL] });
    assert.equal(await bench.answerTo(front, meantFor('127.0.0.1', own)), 'owner:hello');
    assert.equal(await bench.answerTo(own, ''), 'owner:hello');
    assert.equal(await bench.answerTo(plain, meantFor('127.0.0.1', own)), 'plain:hello');
    assert.equal(await bench.answerTo(front, meantFor('127.0.0.1', front)), 'front:hello');
  });

  test('gets none once it is stopped, and those that it has go on', async (t) => {
    const bench = new Bench(t);
    await bench.listener('owner', { bindsToPort: false, addresses: [at('10.0.0.1', 80)] });
    const front = await bench.front();
    const before = bench.client(front).write(`${meantFor('10.0.0.1', 80)}one`);
    assert.equal(await before.until('one'), 'owner:one');
    await bench.proxy.dataPlane.stopListener(FIRST_ID, { endsIdle: false });
    assert.equal(await bench.answerTo(front, meantFor('10.0.0.1', 80)), 'front:hello');
    assert.equal(await before.write('two').until('two'), 'two');
  });

  test('counts them under its own limit instead of that of the other, also beyond it', async (t) => {
    const bench = new Bench(t);
    const { proxy } = bench;
    const globalLimit = proxy.acceptLimit(4);
    const own = await bench.listener('owner', {}, { limit: proxy.acceptLimit(1), globalLimit });
    const front = await bench.front({}, { limit: proxy.acceptLimit(1), globalLimit });
    const clients: WireClient[] = [];
    for (const name of ['one', 'two', 'three']) {
      const client = bench.client(front).write(meantFor('127.0.0.1', own) + name);
      assert.equal(await client.until(name), `owner:${name}`);
      clients.push(client);
    }
    assert.equal(await bench.client(own).rest(), '');
    assert.equal(proxy.listenerStat('downstream_cx_overflow'), 1);
    assert.equal(await bench.answerTo(front, meantFor('10.0.0.1', 1)), 'front:hello');
    await eventually(() => proxy.listenerStat('downstream_cx_active') === 3, 'the end of the last');
    for (const client of clients) client.close();
    await eventually(() => proxy.listenerStat('downstream_cx_active') === 0, 'the end of all');
    assert.equal(await bench.answerTo(own, ''), 'owner:hello');
    assert.equal(proxy.listenerStat('downstream_global_cx_overflow'), 0);
    // Nothing was given back twice.
    const stays = bench.client(front).write(`${meantFor('10.0.0.1', 1)}stays`);
    assert.equal(await stays.until('stays'), 'front:stays');
    assert.equal(await bench.client(front).rest(), '');
    assert.equal(proxy.listenerStat('downstream_cx_overflow'), 2);
  });
});
