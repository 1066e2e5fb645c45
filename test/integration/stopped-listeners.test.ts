// What is left of a listener in a worker when it has stopped: nothing. Its route table, its filters and what they were
// made from go with it, whatever they share with others lives on: clusters, connections to upstreams, timers, the runtime.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { CreateFilter, HttpFilterRegistry } from '../../src/data-plane/index.ts';
import type { ListenerSettings } from '../../src/snapshot/index.ts';
import {
  DataPlaneFixture,
  directRoute,
  forwardTo,
  httpManager,
  loopback,
  retrySettings,
  routeFor,
  routeTo,
  tcpProxy,
} from '../support/data-plane.ts';
import { untilEqual } from '../support/eventually.ts';
import { filterChain } from '../support/listeners.ts';
import { WireClient, WireUpstream } from '../support/wire.ts';

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const UNAVAILABLE = 'HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n';

function collector(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

/** Those that are still there, by name. */
class Remains {
  readonly #refs = new Map<string, WeakRef<object>>();

  note(name: string, thing: object): void {
    this.#refs.set(name, new WeakRef(thing));
  }

  get names(): readonly string[] {
    return [...this.#refs].filter(([, ref]) => ref.deref() !== undefined).map(([name]) => name);
  }
}

const share = { key: 'some.share', default: { numerator: 50, denominator: 100 } };

/** Of HTTP, in a frame of its own: nothing of it stays on the stack. */
function httpSettings(remains: Remains): Partial<ListenerSettings> {
  const mirrors = [
    {
      cluster: 'copies',
      clusterHeader: '',
      fraction: share,
      appendsHostSuffix: true,
      hostRewrite: '',
      headEdits: [],
    },
  ];
  const retry = retrySettings({ conditions: ['5xx'], perTryTimeoutMs: 10_000, maxRetries: 2 });
  const routes = [
    directRoute('/direct', 200, 'direct'),
    routeFor('/retried', forwardTo('web', { retry })),
    routeFor('/copied', forwardTo('web', { mirrors })),
    routeTo('web'),
  ];
  const manager = httpManager(routes, { httpFilters: [{ name: 'test.noted', settings: { of: 'the filter' } }] });
  const chain = filterChain(manager);
  remains.note('settings of the filter chain', chain);
  remains.note('settings of the connection manager', manager);
  remains.note('route table', manager.routeTable);
  for (const [at, route] of routes.entries()) remains.note(`route ${at}`, route);
  return { addresses: [loopback(0)], filterChains: [chain] };
}

function tcpSettings(remains: Remains): Partial<ListenerSettings> {
  const proxy = tcpProxy('web');
  remains.note('settings of the TCP proxy', proxy);
  return { addresses: [loopback(0)], filterChains: [filterChain(proxy)] };
}

/** A filter that what is made of it for each listener is noted of. */
function notedFilters(remains: Remains): HttpFilterRegistry {
  const compile = (settings: unknown): CreateFilter => {
    const create: CreateFilter = () => ({
      decodeHeaders(head) {
        head.append('x-seen', String(settings));
        return 'continue';
      },
    });
    remains.note('filter', create);
    return create;
  };
  return { 'test.noted': { requestBody: 'reads', encodes: true, responseBody: 'reads', compile } };
}

for (const readMode of ['lean', 'events'] as const) {
  test(`nothing of a listener stays behind it, reading: ${readMode}`, async (t) => {
    const collect = collector();
    const remains = new Remains();
    let answers = 0;
    const upstream = await WireUpstream.answering(OK);
    const failing = await WireUpstream.start((socket) => {
      socket.on('data', () => void socket.write(answers++ === 0 ? UNAVAILABLE : OK));
      socket.on('end', () => socket.end());
    });
    const proxy = new DataPlaneFixture({ readMode, httpFilters: notedFilters(remains) });
    t.after(async () => {
      await proxy.close();
      await upstream.close();
      await failing.close();
    });
    proxy.cluster('web', [loopback(failing.port)]);
    proxy.cluster('copies', [loopback(upstream.port)]);
    const [httpPort] = await proxy.listenWith(httpSettings(remains));
    const [tcpPort] = await proxy.listenWith(tcpSettings(remains));
    const all = remains.names;
    const [client, raw] = [new WireClient(httpPort!), new WireClient(tcpPort!)];
    for (const path of ['/retried', '/copied', '/direct', '/']) {
      const { status } = await client.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`).response();
      assert.equal(status, 200, path);
    }
    assert.equal((await raw.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n').response()).status, 200);
    collect();
    assert.deepEqual(remains.names, all);

    client.close();
    raw.close();
    const gone = [1, 2].map(
      (id) => new Promise<void>((resolve) => void proxy.dataPlane.stopListener(id, { onGone: resolve })),
    );
    await Promise.all(gone);
    const left = (): string => {
      collect();
      return remains.names.join(', ');
    };
    await untilEqual('', left, 'what is left of the listeners');
    // Those that are shared serve on.
    assert.equal(proxy.clusterStat('web', 'upstream_cx_active'), 1);
  });
}
