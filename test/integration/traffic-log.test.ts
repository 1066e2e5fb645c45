// What the log says of connections and requests at debug, and that it says nothing above.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { listenerWith, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy, httpListener, NamedUpstream } from '../support/embedded.ts';
import { eventually } from '../support/eventually.ts';

/** Numbers of connections and streams by the order in which they appear, and times that are not the test's. */
function readable(lines: readonly string[], ports: Readonly<Record<string, number>>): string[] {
  const seen = new Map<string, string>();
  const plainly = (id: string): string => {
    if (!seen.has(id)) seen.set(id, `${id[0]}${[...seen.keys()].filter((each) => each[0] === id[0]).length + 1}`);
    return seen.get(id)!;
  };
  return lines.map((line) => {
    let text = line.replaceAll(/(?<=\[)[CS]\d+(?=\])/g, plainly).replace(/after \d+ ms/, 'after N ms');
    for (const [name, port] of Object.entries(ports)) text = text.replaceAll(`:${port}`, `:${name}`);
    return text;
  });
}

describe('connections and requests in the log', () => {
  it('leave lines at debug that name the connection, the stream, the route, the host and the end', async () => {
    await using upstream = await NamedUpstream.start('web');
    const lines: string[] = [];
    const proxy = await createProxy(bootstrapOf([httpListener('http', 'web')], [clusterAt('web', upstream.port)]), {
      componentLogLevel: 'connection:debug,http:debug,router:debug',
      logFormat: '%n %v',
      log: (line) => lines.push(line),
    });
    const { port } = proxy.listeners.get('http')!;
    const client = connect(port, '127.0.0.1');
    await once(client, 'connect');
    const { port: own } = client.address() as { port: number };
    client.write('GET /a?b=c HTTP/1.1\r\nhost: example.com\r\nauthorization: secret\r\nconnection: close\r\n\r\n');
    await once(client.resume(), 'end');
    client.end();
    await eventually(() => lines.some((line) => line.includes('closed after')), 'the end of the connection');
    await proxy.close();
    assert.deepEqual(
      readable(
        lines.filter((line) => line.includes('[C')),
        { own, http: port, web: upstream.port },
      ),
      [
        'connection [C1] new connection from 127.0.0.1:own',
        "http [C1][S1] GET /a?b=c HTTP/1.1, host 'example.com'",
        "router [C1][S1] goes to cluster 'web'",
        'router [C1][S1] attempt 1 goes to 127.0.0.1:web',
        'http [C1][S1] 200 after N ms, via_upstream',
        'connection [C1] closed after N ms',
      ],
    );
  });

  it('tell two requests of one connection apart, and why a request was answered here', async () => {
    const lines: string[] = [];
    const listener = JSON.stringify(httpListener('http', 'web')).replace('{"prefix":"/"}', '{"prefix":"/known"}');
    const proxy = await createProxy(
      bootstrapOf([JSON.parse(listener)], [{ name: 'web', load_assignment: { cluster_name: 'web' } }]),
      { componentLogLevel: 'http:debug,router:debug', logFormat: '%v', log: (line) => lines.push(line) },
    );
    const client = connect(proxy.listeners.get('http')!.port, '127.0.0.1').resume();
    client.write('GET /other HTTP/1.1\r\nhost: a\r\n\r\nGET /known HTTP/1.1\r\nhost: a\r\n\r\n');
    await eventually(() => lines.filter((line) => line.includes(' ms, ')).length === 2, 'both answers');
    client.destroy();
    await proxy.close({ graceMs: 0 });
    assert.deepEqual(
      readable(
        lines.filter((line) => line.includes('[C')),
        {},
      ),
      [
        "[C1][S1] GET /other HTTP/1.1, host 'a'",
        '[C1][S1] no route matches',
        '[C1][S1] 404 after N ms, NR, route_not_found',
        "[C1][S2] GET /known HTTP/1.1, host 'a'",
        "[C1][S2] goes to cluster 'web'",
        '[C1][S2] 503 after N ms, UH, no_healthy_upstream',
      ],
    );
  });

  it('say where a raw connection goes', async () => {
    await using upstream = await NamedUpstream.start('web');
    const lines: string[] = [];
    const listener = listenerWith([tcpFilter({ stat_prefix: 'tcp', cluster: 'web' })], {
      name: 'tcp',
      address: socketAddress('127.0.0.1', 0),
    });
    const proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', upstream.port)]), {
      componentLogLevel: 'filter:debug',
      logFormat: '%v',
      log: (line) => lines.push(line),
    });
    const client = connect(proxy.listeners.get('tcp')!.port, '127.0.0.1').resume();
    await eventually(() => lines.some((line) => line.includes('[C')), 'the line of the connection');
    client.destroy();
    await proxy.close({ graceMs: 0 });
    const text = lines.filter((line) => line.includes('[C'));
    assert.deepEqual(readable(text, { web: upstream.port }), ["[C1] goes to 127.0.0.1:web of cluster 'web'"]);
  });

  it('leave none at info', async () => {
    await using upstream = await NamedUpstream.start('web');
    const lines: string[] = [];
    const proxy = await createProxy(bootstrapOf([httpListener('http', 'web')], [clusterAt('web', upstream.port)]), {
      log: (line) => lines.push(line),
    });
    await (await fetch(proxy.listeners.get('http')!.url)).text();
    await proxy.close();
    assert.deepEqual(
      lines.filter((line) => line.includes('[C')),
      [],
    );
  });
});
