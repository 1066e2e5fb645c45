// What happens to a connection before its protocol: listener filters, the choice of the filter chain, limits. By bytes
// on the wire, in both ways of reading sockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, type TestContext, test } from 'node:test';
import type { FilterChainMatch, FilterChainSettings, ListenerSettings } from '../../src/snapshot/index.ts';
import { DataPlaneFixture, httpManager, loopback, routeTo, tcpProxy } from '../support/data-plane.ts';
import { eventually } from '../support/eventually.ts';
import { filterChain, MATCHES_ALL, PROXY_PROTOCOL } from '../support/listeners.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { proxyV2 } from '../support/proxy-header.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

type ReadMode = 'lean' | 'events';
const READ_MODES: readonly ReadMode[] = ['lean', 'events'];
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const REQUEST = 'GET /one HTTP/1.1\r\nhost: a\r\n\r\n';
const V1 = 'PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n';
const V2 = proxyV2(0x21, 0x11, Buffer.from([192, 0, 2, 1, 198, 51, 100, 2, 0xdc, 0x04, 0x01, 0xbb, 3, 0, 1, 65]));

function hasIpv6(): boolean {
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ family }) => family === 'IPv6'));
}

function assertBalanced({ listenerStat, listenerWorkerStat, dataPlane }: DataPlaneFixture): void {
  const active = listenerStat('downstream_cx_active');
  assert.equal(listenerStat('downstream_cx_total') - listenerStat('downstream_cx_destroy'), active);
  assert.equal(active + listenerStat('downstream_pre_cx_active'), dataPlane.connectionCount);
  assert.equal(listenerWorkerStat('downstream_cx_total'), listenerStat('downstream_cx_total'));
  assert.equal(listenerWorkerStat('downstream_cx_active'), active);
}

interface Running {
  readonly proxy: DataPlaneFixture;
  readonly ports: readonly number[];
  readonly client: (port?: number) => WireClient;
}

interface Options {
  readonly readMode?: ReadMode;
  readonly clock?: ManualClock;
  /** Ports of upstreams by cluster. */
  readonly clusters?: Readonly<Record<string, number>>;
}

async function listening(t: TestContext, settings: Partial<ListenerSettings>, options: Options = {}): Promise<Running> {
  const { readMode = 'lean', clock, clusters = {} } = options;
  const proxy = new DataPlaneFixture({ readMode, ...(clock === undefined ? {} : { clock }) });
  for (const [name, port] of Object.entries(clusters)) proxy.cluster(name, [loopback(port)]);
  const ports = await proxy.listenWith(settings);
  const clients: WireClient[] = [];
  t.after(async () => {
    for (const client of clients) client.close();
    const closed = proxy.close();
    clock?.turn(1000);
    await closed;
  });
  const client = (port = ports[0]!): WireClient => {
    const made = new WireClient(port);
    made.socket.setNoDelay(true);
    clients.push(made);
    return made;
  };
  return { proxy, ports, client };
}

async function httpUpstream(t: TestContext): Promise<WireUpstream & { heads: string[] }> {
  const upstream = await WireUpstream.answering(OK);
  t.after(() => upstream.close());
  return upstream;
}

/** An upstream that says its name, and then what it receives. */
async function namedUpstream(t: TestContext, name: string): Promise<WireUpstream> {
  const upstream = await WireUpstream.start((socket) => {
    socket.write(`${name}:`);
    socket.pipe(socket);
  });
  t.after(() => upstream.close());
  return upstream;
}

/** HTTP behind the PROXY protocol; the peer's address is told to the upstream. */
async function behindProxy(t: TestContext, fields: Partial<ListenerSettings>, options: Options = {}) {
  const upstream = await httpUpstream(t);
  const chain = filterChain(httpManager([routeTo('web')], { useRemoteAddress: true }));
  const settings = { listenerFilters: [PROXY_PROTOCOL], filterChains: [chain], ...fields };
  return { upstream, ...(await listening(t, settings, { ...options, clusters: { web: upstream.port } })) };
}

for (const readMode of READ_MODES) {
  describe(`the PROXY protocol, reading by ${readMode}`, () => {
    for (const [version, header, xff] of [
      ['v1', Buffer.from(V1), '192.0.2.1'],
      ['v1 unknown', Buffer.from('PROXY UNKNOWN\r\n'), '127.0.0.1'],
      ['v2', V2, '192.0.2.1'],
      ['v2 local', proxyV2(0x20, 0x00, Buffer.alloc(0)), '127.0.0.1'],
    ] as const) {
      test(`${version}: the address it names is the client's, however the bytes arrive`, async (t) => {
        const { proxy, upstream, client } = await behindProxy(t, {}, { readMode });
        const bytes = Buffer.concat([header, Buffer.from(REQUEST)]);
        const whole = client().write(bytes);
        assert.equal((await whole.response()).body, 'ok');
        // More on the same connection has no header of its own.
        assert.equal((await whole.write(REQUEST).response()).status, 200);
        const single = client();
        for (const byte of bytes) {
          single.write(Buffer.from([byte]));
          await new Promise(setImmediate);
        }
        assert.equal((await single.response()).status, 200);
        for (const head of upstream.heads) assert.match(head, new RegExp(`x-forwarded-for: ${xff}\r\n`));
        assert.equal(upstream.heads.length, 3);
        assert.equal(proxy.listenerStat('downstream_pre_cx_active'), 0);
        assertBalanced(proxy);
      });
    }

    test('one filter after another takes its header, also in pieces', async (t) => {
      const { upstream, client } = await behindProxy(
        t,
        { listenerFilters: [PROXY_PROTOCOL, PROXY_PROTOCOL] },
        { readMode },
      );
      const inner = 'PROXY TCP4 203.0.113.9 198.51.100.2 1 443\r\n';
      const bytes = Buffer.concat([V2, Buffer.from(inner + REQUEST)]);
      assert.equal((await client().write(bytes).response()).status, 200);
      const single = client();
      for (const byte of bytes) {
        single.write(Buffer.from([byte]));
        await new Promise(setImmediate);
      }
      assert.equal((await single.response()).status, 200);
      for (const head of upstream.heads) assert.match(head, /x-forwarded-for: 203\.0\.113\.9\r\n/);
      assert.equal(upstream.heads.length, 2);
    });

    test('what is not a header closes the connection, and nothing of it goes on', async (t) => {
      const { proxy, upstream, client } = await behindProxy(t, {}, { readMode });
      const garbage = [REQUEST, `PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n${REQUEST}`, proxyV2(0x21, 0x41, Buffer.alloc(12))];
      for (const bytes of garbage) assert.equal(await client().write(bytes).rest(), '');
      assert.deepEqual(upstream.heads, []);
      const { proxyProtocolStat: stat, listenerStat } = proxy;
      assert.deepEqual([stat('not_found_disallowed'), stat('versions.v1.error'), stat('versions.v2.error')], [1, 1, 1]);
      assert.deepEqual([listenerStat('downstream_cx_total'), listenerStat('downstream_pre_cx_active')], [0, 0]);
    });

    test('a client that leaves before its header is complete is counted', async (t) => {
      const { proxy, client } = await behindProxy(t, {}, { readMode });
      const early = client().write('PROXY TC');
      early.socket.end();
      assert.equal(await early.rest(), '');
      assert.equal(proxy.listenerStat('downstream_listener_filter_remote_close'), 1);
      assert.equal(proxy.dataPlane.connectionCount, 0);
    });

    test('a header that never becomes complete closes the connection after the timeout', async (t) => {
      const clock = new ManualClock();
      const { proxy, client } = await behindProxy(t, { listenerFiltersTimeoutMs: 500 }, { readMode, clock });
      const slow = client().write('PROXY ');
      await eventually(() => proxy.listenerStat('downstream_pre_cx_active') === 1, 'accepted');
      clock.turn(490);
      assert.equal(slow.isEnded, false);
      clock.turn(20);
      assert.equal(await slow.rest(), '');
      assert.equal(proxy.listenerStat('downstream_pre_cx_timeout'), 1);
      assertBalanced(proxy);
    });

    test('after the timeout the bytes may go on as they are, none lost', async (t) => {
      const clock = new ManualClock();
      const upstream = await namedUpstream(t, 'up');
      const { proxy, client } = await listening(
        t,
        {
          listenerFilters: [PROXY_PROTOCOL],
          listenerFiltersTimeoutMs: 500,
          continueOnListenerFiltersTimeout: true,
          filterChains: [filterChain(tcpProxy('raw'))],
        },
        { readMode, clock, clusters: { raw: upstream.port } },
      );
      const slow = client().write('PRO');
      await eventually(() => proxy.listenerStat('downstream_pre_cx_active') === 1, 'accepted');
      await new Promise(setImmediate);
      clock.turn(520);
      slow.write('XY and more');
      assert.equal(await slow.until('more'), 'up:PROXY and more');
      slow.write(Buffer.alloc(300_000, 'x'));
      assert.equal((await slow.bytes(300_000)).equals(Buffer.alloc(300_000, 'x')), true);
      assert.equal(proxy.listenerStat('downstream_pre_cx_timeout'), 1);
      assertBalanced(proxy);
    });

    test('where it is optional, other bytes are the protocol', async (t) => {
      const optional = { ...PROXY_PROTOCOL, isOptional: true, acceptsV1: false };
      const { proxy, upstream, client } = await behindProxy(t, { listenerFilters: [optional] }, { readMode });
      assert.equal((await client().write(REQUEST).response()).status, 200);
      const v2 = client().write(Buffer.concat([V2, Buffer.from(REQUEST)]));
      assert.equal((await v2.response()).status, 200);
      // A version that is not accepted is not looked for: HTTP refuses it as a request.
      assert.equal((await client().write(V1).response()).status, 400);
      assert.equal(upstream.heads.length, 2);
      assert.equal(proxy.proxyProtocolStat('not_found_allowed'), 2);
    });

    test('a version that is not accepted closes the connection', async (t) => {
      const { proxy, client } = await behindProxy(
        t,
        { listenerFilters: [{ ...PROXY_PROTOCOL, acceptsV1: false }] },
        { readMode },
      );
      assert.equal(
        await client()
          .write(V1 + REQUEST)
          .rest(),
        '',
      );
      assert.equal(proxy.proxyProtocolStat('versions.v1.disallowed'), 1);
    });
  });
}

describe('the filter chain', () => {
  const chainTo = (cluster: string, match: Partial<FilterChainMatch>): FilterChainSettings =>
    filterChain(tcpProxy(cluster), { match: { ...MATCHES_ALL, ...match } });
  const from = (ip: string, prefixLength: number): Partial<FilterChainMatch> => ({
    sourcePrefixRanges: [{ ip, prefixLength }],
  });

  test('is chosen by the addresses of the connection, which a PROXY header may name', async (t) => {
    const [one, two] = [await namedUpstream(t, 'one'), await namedUpstream(t, 'two')];
    const { proxy, client } = await listening(
      t,
      {
        listenerFilters: [PROXY_PROTOCOL],
        filterChains: [chainTo('one', from('192.0.2.0', 24)), chainTo('two', { destinationPort: 444 })],
      },
      { clusters: { one: one.port, two: two.port } },
    );
    assert.equal(await client().write(`${V1}hi`).until('hi'), 'one:hi');
    assert.equal(await client().write('PROXY TCP4 10.0.0.1 10.0.0.2 1 444\r\nhi').until('hi'), 'two:hi');
    assert.equal(await client().write('PROXY TCP4 10.0.0.1 10.0.0.2 1 445\r\nhi').rest(), '');
    assert.equal(proxy.listenerStat('no_filter_chain_match'), 1);
    assert.equal(proxy.listenerStat('downstream_cx_total'), 2);
    assertBalanced(proxy);
  });

  test('without a match is the default one, or the connection is closed', async (t) => {
    const upstream = await namedUpstream(t, 'default');
    const chains = [chainTo('gone', from('192.0.2.0', 24))];
    const clusters = { raw: upstream.port };
    const last = await listening(t, { filterChains: chains, defaultFilterChain: chainTo('raw', {}) }, { clusters });
    assert.equal(await last.client().write('hi').until('hi'), 'default:hi');
    const none = await listening(t, { filterChains: chains }, { clusters });
    assert.equal(await none.client().rest(), '');
    assert.equal(none.proxy.listenerStat('no_filter_chain_match'), 1);
    assert.equal(none.proxy.dataPlane.connectionCount, 0);
  });
});

describe('a limit of accepted connections', () => {
  async function limited(t: TestContext, fields: Partial<ListenerSettings> = {}) {
    const upstream = await namedUpstream(t, 'up');
    const chains = [filterChain(tcpProxy('raw'))];
    const { proxy, client } = await listening(t, {}, { clusters: { raw: upstream.port } });
    const globalLimit = proxy.acceptLimit(3);
    const settings = { filterChains: chains, listenerFilters: [{ ...PROXY_PROTOCOL, isOptional: true }], ...fields };
    const [own] = await proxy.listenWith(settings, { limit: proxy.acceptLimit(2), globalLimit });
    const [other] = await proxy.listenWith(settings, { globalLimit });
    const overflows = (): number[] => [
      proxy.listenerStat('downstream_cx_overflow'),
      proxy.listenerStat('downstream_global_cx_overflow'),
    ];
    return { proxy, client, own: own!, other: other!, overflows };
  }

  test('may come, change and go while connections are open, which count', async (t) => {
    const upstream = await namedUpstream(t, 'up');
    const { proxy, client } = await listening(t, {}, { clusters: { raw: upstream.port } });
    const unlimited = Number.POSITIVE_INFINITY;
    const [port] = await proxy.listenWith(
      { filterChains: [filterChain(tcpProxy('raw'))] },
      { globalLimit: proxy.acceptLimit(unlimited, 'all'), limit: proxy.acceptLimit(unlimited, 'own') },
    );
    const isServed = async (): Promise<boolean> => (await client(port!).write('a').until('up:a')) === 'up:a';
    assert.ok(await isServed());
    for (const [key, stat] of [
      ['all', 'downstream_global_cx_overflow'],
      ['own', 'downstream_cx_overflow'],
    ] as const) {
      proxy.dataPlane.updateRuntime(new Map([[key, '1']]));
      assert.equal(await client(port!).write('b').rest(), '');
      assert.equal(proxy.listenerStat(stat), 1);
      proxy.dataPlane.updateRuntime(new Map());
      assert.ok(await isServed());
    }
  });

  test('closes at once what comes beyond it, before anything else sees it', async (t) => {
    const { proxy, client, own, other, overflows } = await limited(t);
    // Places are taken by connections that have not said anything yet.
    const waiting = client(own);
    await eventually(() => proxy.listenerStat('downstream_pre_cx_active') === 1, 'the first is accepted');
    const second = client(own).write('b');
    assert.equal(await second.until('up:b'), 'up:b');
    assert.equal(await client(own).write('c').rest(), '');
    assert.deepEqual(overflows(), [1, 0]);
    assert.equal(proxy.listenerStat('downstream_cx_total'), 1);

    assert.equal(await client(other).write('d').until('up:d'), 'up:d');
    assert.equal(await client(other).write('e').rest(), '');
    assert.equal(await client(own).write('f').rest(), '');
    assert.deepEqual(overflows(), [1, 2]);
    assert.equal(proxy.listenerStat('downstream_cx_active'), 2);

    // Each kind of end gives its place back.
    waiting.close();
    await eventually(() => proxy.listenerStat('downstream_pre_cx_active') === 0, 'the first is closed');
    assert.equal(await client(own).write('g').until('up:g'), 'up:g');
    second.socket.end();
    await second.rest();
    await eventually(() => proxy.listenerStat('downstream_cx_active') === 2, 'the second is closed');
    assert.equal(await client(own).write('h').until('up:h'), 'up:h');
    assert.deepEqual(overflows(), [1, 2]);
    assertBalanced(proxy);
  });

  test('also gives back the places of connections that no filter chain takes', async (t) => {
    const match = { ...MATCHES_ALL, sourcePrefixRanges: [{ ip: '192.0.2.0', prefixLength: 24 }] };
    const { client, own, overflows, proxy } = await limited(t, {
      filterChains: [filterChain(tcpProxy('raw'), { match })],
    });
    for (let index = 0; index < 6; index += 1) assert.equal(await client(own).write('x').rest(), '');
    assert.deepEqual(overflows(), [0, 0]);
    assert.equal(proxy.listenerStat('no_filter_chain_match'), 6);
  });
});

describe('a connection limit', () => {
  const enabled = { key: 'limit.on', default: true };
  const limited = (maxConnections: number, delayMs: number): FilterChainSettings =>
    filterChain(tcpProxy('raw'), {
      networkFilters: [
        {
          name: 'filters.network.connection_limit',
          settings: { maxConnections, delayMs, enabled },
          statScope: 'connection_limit.l.',
          counters: ['limited_connections'],
          gauges: ['active_connections'],
          hasSharedCount: true,
        },
      ],
    });

  test('closes what is beyond it, until a place is free', async (t) => {
    const upstream = await namedUpstream(t, 'up');
    const { proxy, client } = await listening(
      t,
      { filterChains: [limited(2, 0)] },
      { clusters: { raw: upstream.port } },
    );
    const [first, second] = [client(), client()];
    assert.equal(await first.until('up:'), 'up:');
    assert.equal(await second.until('up:'), 'up:');
    assert.equal(await client().rest(), '');
    assert.deepEqual(
      [
        proxy.networkFilterStat('connection_limit.l.active_connections'),
        proxy.networkFilterStat('connection_limit.l.limited_connections'),
        proxy.listenerStat('downstream_cx_overflow'),
      ],
      [2, 1, 0],
    );
    assertBalanced(proxy);
    first.close();
    await eventually(() => proxy.networkFilterStat('connection_limit.l.active_connections') === 1, 'released');
    assert.equal(await client().until('up:'), 'up:');
    assertBalanced(proxy);
  });

  test('holds while the runtime has it enabled, with those counted that came before', async (t) => {
    const upstream = await namedUpstream(t, 'up');
    const { proxy, client } = await listening(
      t,
      { filterChains: [limited(1, 0)] },
      { clusters: { raw: upstream.port } },
    );
    proxy.dataPlane.updateRuntime(new Map([['limit.on', 'false']]));
    const open = [client(), client()];
    for (const each of open) assert.equal(await each.until('up:'), 'up:');
    proxy.dataPlane.updateRuntime(new Map());
    assert.equal(await client().rest(), '');
    open[0]!.close();
    await eventually(() => proxy.networkFilterStat('connection_limit.l.active_connections') === 1, 'released');
    assert.equal(await client().rest(), '');
    open[1]!.close();
    await eventually(() => proxy.networkFilterStat('connection_limit.l.active_connections') === 0, 'released');
    assert.equal(await client().until('up:'), 'up:');
    assertBalanced(proxy);
  });

  test('may keep them for a while, unread', async (t) => {
    const clock = new ManualClock();
    const upstream = await namedUpstream(t, 'up');
    const { proxy, client } = await listening(
      t,
      { filterChains: [limited(1, 500)] },
      { clock, clusters: { raw: upstream.port } },
    );
    const first = client();
    await first.until('up:');
    const refused = client().write('bytes');
    await eventually(() => proxy.networkFilterStat('connection_limit.l.limited_connections') === 1, 'refused');
    assert.equal(proxy.dataPlane.connectionCount, 2);
    clock.turn(490);
    assert.equal(refused.isEnded, false);
    clock.turn(20);
    assert.equal(await refused.rest(), '');
    await eventually(() => proxy.dataPlane.connectionCount === 1, 'closed');
    assert.equal(upstream.sockets.length, 1);
    assertBalanced(proxy);
  });
});

describe('the buffer limit of a listener', () => {
  const MIB = 1024 * 1024;
  const LIMIT = 64 * 1024;

  /** Bytes held for a client that reads nothing, once both sides stand still. */
  async function heldBytes(
    t: TestContext,
    proxy: DataPlaneFixture,
    client: WireClient,
    request: string,
  ): Promise<number> {
    client.socket.pause();
    client.write(request);
    const { dataPlane } = proxy;
    await eventually(() => dataPlane.readSlabBytes > 0, 'a read of its own');
    t.after(() => client.close());
    return dataPlane.readSlabBytes;
  }

  test('bounds what waits for a slow client, also where the cluster would allow more', async (t) => {
    const upstream = await WireUpstream.start((socket) => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${64 * MIB}\r\n\r\n`);
        socket.write(Buffer.alloc(64 * MIB));
      });
    });
    t.after(() => upstream.close());
    for (const [bufferLimitBytes, expected] of [
      [MIB, MIB],
      [LIMIT, LIMIT],
    ] as const) {
      for (const filter of [httpManager([routeTo('up')]), tcpProxy('up')]) {
        const settings = { bufferLimitBytes, filterChains: [filterChain(filter)] };
        const { proxy, client } = await listening(t, settings, { clusters: { up: upstream.port } });
        const held = await heldBytes(t, proxy, client(), REQUEST);
        // A stream of unknown length gets no more than the middle size.
        assert.equal(held, filter.kind === 'tcp-proxy' ? Math.min(expected, 256 * 1024) : expected);
      }
    }
  });
});

describe('a listener', () => {
  test('accepts on all its addresses, each with a port of its own', async (t) => {
    const upstream = await namedUpstream(t, 'up');
    const any = { kind: 'ip', ip: '127.0.0.1', port: 0 } as const;
    const name = `@weir-test-${process.pid}`;
    const { proxy, ports, client } = await listening(
      t,
      {
        addresses: [any, any, { kind: 'pipe', path: name, mode: 0 }],
        filterChains: [filterChain(tcpProxy('raw'))],
        socketOptions: {
          noDelay: false,
          keepalive: { probes: 3, timeSeconds: 10, intervalSeconds: 5 },
          typeOfService: 16,
        },
      },
      { clusters: { raw: upstream.port } },
    );
    assert.equal(ports[2], 0);
    assert.notEqual(ports[0], ports[1]);
    for (const port of ports.slice(0, 2)) assert.equal(await client(port).until('up:'), 'up:');
    const pipe = connect({ path: `\0${name.slice(1)}` });
    const [bytes] = (await once(pipe, 'data')) as [Buffer];
    assert.equal(bytes.toString(), 'up:');
    assert.equal(proxy.listenerStat('downstream_cx_total'), 3);
    pipe.destroy();
  });

  test('sets the keepalive of an address on what comes there, and that of all elsewhere', async (t) => {
    const setKeepAlive = t.mock.method(Socket.prototype, 'setKeepAlive');
    const upstream = await namedUpstream(t, 'up');
    const any = { kind: 'ip', ip: '127.0.0.1', port: 0 } as const;
    const common = { probes: 3, timeSeconds: 10, intervalSeconds: 5 };
    const { ports, client } = await listening(
      t,
      {
        addresses: [any, any, any],
        filterChains: [filterChain(tcpProxy('raw'))],
        socketOptions: { noDelay: true, keepalive: common, typeOfService: 0 },
        ownKeepalives: [null, { ...common, timeSeconds: 20 }, null],
      },
      { clusters: { raw: upstream.port } },
    );
    for (const port of ports) assert.equal(await client(port).until('up:'), 'up:');
    const delays = setKeepAlive.mock.calls.map(
      (call) => (call.arguments[0] as unknown as { initialDelay: number }).initialDelay,
    );
    assert.deepEqual(delays, [10_000, 20_000, 10_000]);
  });

  test('on IPv6 takes IPv4 clients only where that is asked for, as the IPv4 clients they are', async (t) => {
    if (!hasIpv6()) return t.skip('this machine has no IPv6');
    const upstream = await httpUpstream(t);
    const clusters = { web: upstream.port };
    const filterChains = [filterChain(httpManager([routeTo('web')], { useRemoteAddress: true }))];
    const six = { kind: 'ip', ip: '::', port: 0 } as const;
    const both = await listening(t, { addresses: [{ ...six, acceptsIpv4: true }], filterChains }, { clusters });
    assert.equal((await both.client().write(REQUEST).response()).status, 200);
    assert.match(upstream.heads[0]!, /x-forwarded-for: 127\.0\.0\.1\r\n/);
    const only = await listening(t, { addresses: [six], filterChains }, { clusters });
    // The same port of 127.0.0.1 may be somebody else's.
    const client = connect(only.ports[0]!, '127.0.0.66');
    const [error] = (await once(client, 'error')) as [NodeJS.ErrnoException];
    assert.equal(error.code, 'ECONNREFUSED');
  });

  test('that is drained ends connections whose filter chain is not chosen', async (t) => {
    const { proxy, client } = await behindProxy(t, {});
    const waiting = client().write('PROXY ');
    await eventually(() => proxy.listenerStat('downstream_pre_cx_active') === 1, 'accepted');
    await proxy.dataPlane.shutdown(60_000);
    assert.equal(await waiting.rest(), '');
    assert.equal(proxy.dataPlane.connectionCount, 0);
  });
});
