// What access logs tell of bytes on the wire and of moments, held against what clients and servers have seen of both.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { connect as connectPlain, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type JsonObject, listenerWith, socketAddress, tcpFilter } from '../support/bootstrap.ts';
import { bootstrapOf, clusterAt, createProxy } from '../support/embedded.ts';
import { filteredListener, routeTo } from '../support/embedded-filters.ts';
import { HTTP2 } from '../support/guarded-proxy.ts';
import { Http2Upstream } from '../support/http2-upstream.ts';
import { WireClient } from '../support/wire.ts';

const BYTES = ['WIRE_BYTES', 'HEADER_BYTES', 'DECOMPRESSED_HEADER_BYTES'].flatMap((kind) =>
  ['DOWNSTREAM', 'UPSTREAM'].flatMap((side) => ['RECEIVED', 'SENT'].map((way) => `${side}_${kind}_${way}`)),
);
const MOMENTS = ['DS_RX_BEG', 'DS_RX_END', 'US_TX_BEG', 'US_TX_END', 'US_RX_BEG', 'US_RX_END', 'DS_TX_END'];
const DURATIONS = MOMENTS.slice(1).map((moment) => `COMMON_DURATION(DS_RX_BEG:${moment}:us)`);

type Entry = Record<string, number | null>;

function log(file: string): JsonObject {
  const json_format = Object.fromEntries([...BYTES, ...DURATIONS].map((name) => [name, `%${name}%`]));
  return {
    name: 'envoy.access_loggers.file',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
      path: file,
      log_format: { json_format },
    },
  };
}

async function logging(t: TestContext, port: number, { cluster = {}, isRaw = false } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-wire-'));
  const file = path.join(folder, 'log');
  const access_log = [log(file)];
  const listener = isRaw
    ? listenerWith([tcpFilter({ cluster: 'web', access_log })], {
        name: 'main',
        address: socketAddress('127.0.0.1', 0),
      })
    : filteredListener([], [routeTo('/')], { manager: { access_log } });
  const proxy = await createProxy(bootstrapOf([listener], [clusterAt('web', port, cluster)]));
  t.after(() => proxy.close());
  t.after(() => rmSync(folder, { recursive: true }));
  const entry = async (): Promise<Entry> => {
    await proxy.close();
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    assert.equal(lines.length, 1);
    return JSON.parse(lines[0]!) as Entry;
  };
  return { port: proxy.listeners.get('main')!.port, entry };
}

/** A server that keeps count of its connection and answers the first request that has come in full. */
async function counting(t: TestContext, answer: string, isWhole: (text: string) => boolean) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    let text = '';
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1');
      if (isWhole(text)) socket.write(answer);
    });
    socket.on('end', () => socket.end());
    socket.on('error', () => {});
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { port: (server.address() as AddressInfo).port, sockets };
}

function assertOrdered(entry: Entry): void {
  let before = 0;
  for (const name of DURATIONS) {
    const at = entry[name];
    assert.ok(typeof at === 'number' && at >= before, `${name} ${at} behind ${before}`);
    before = at;
  }
}

describe('bytes on the wire', () => {
  test('of HTTP/1 are those that a connection has carried', async (t) => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-long: some words\r\n\r\n';
    const server = await counting(t, `${head}hello`, (text) => text.endsWith('body'));
    const { port, entry } = await logging(t, server.port);
    const client = new WireClient(port);
    const asked = 'POST /a HTTP/1.1\r\nhost: a.test\r\ncontent-length: 4\r\n\r\n';
    client.write(`${asked}body`);
    const answer = await client.response();
    client.close();
    const told = await entry();
    const [socket] = server.sockets;
    const { head: answered } = answer;
    assert.deepEqual(
      BYTES.map((name) => `${name} ${told[name]}`),
      [
        `DOWNSTREAM_WIRE_BYTES_RECEIVED ${asked.length + 4}`,
        `DOWNSTREAM_WIRE_BYTES_SENT ${answered.length + 5}`,
        `UPSTREAM_WIRE_BYTES_RECEIVED ${head.length + 5}`,
        `UPSTREAM_WIRE_BYTES_SENT ${socket!.bytesRead}`,
        `DOWNSTREAM_HEADER_BYTES_RECEIVED ${asked.length}`,
        `DOWNSTREAM_HEADER_BYTES_SENT ${answered.length}`,
        `UPSTREAM_HEADER_BYTES_RECEIVED ${head.length}`,
        `UPSTREAM_HEADER_BYTES_SENT ${socket!.bytesRead - 4}`,
        `DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED ${asked.length}`,
        `DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT ${answered.length}`,
        `UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED ${head.length}`,
        `UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT ${socket!.bytesRead - 4}`,
      ],
    );
    assertOrdered(told);
  });

  test('of HTTP/1 in chunks count what frames them', async (t) => {
    const body = '5\r\nhello\r\n0\r\n\r\n';
    const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
    const server = await counting(t, head + body, (text) => text.endsWith('\r\n\r\n'));
    const { port, entry } = await logging(t, server.port);
    const client = new WireClient(port);
    client.write('GET / HTTP/1.1\r\nhost: a.test\r\n\r\n');
    const answered = await client.until('0\r\n\r\n');
    client.close();
    const told = await entry();
    assert.deepEqual(
      [told.UPSTREAM_WIRE_BYTES_RECEIVED, told.DOWNSTREAM_WIRE_BYTES_SENT],
      [head.length + body.length, answered.length],
    );
  });

  test('of HTTP/2 are frames and compressed heads', async (t) => {
    const upstream = await Http2Upstream.start(t, (stream) => {
      stream.respond({ ':status': 200, 'x-long': 'a'.repeat(200), 'content-length': '5' });
      stream.end('hello');
    });
    const { port, entry } = await logging(t, upstream.port, { cluster: HTTP2 });
    const session = connect(`http://127.0.0.1:${port}`);
    const stream = session.request({ ':method': 'POST', ':path': '/a', 'content-length': '4' });
    stream.end('body');
    stream.resume();
    await once(stream, 'end');
    session.close();
    const told = await entry();
    for (const [side, sent, received] of [
      ['DOWNSTREAM', 5, 4],
      ['UPSTREAM', 4, 5],
    ] as const) {
      for (const [way, body] of [
        ['SENT', sent],
        ['RECEIVED', received],
      ] as const) {
        const heads = told[`${side}_HEADER_BYTES_${way}`]!;
        const text = told[`${side}_DECOMPRESSED_HEADER_BYTES_${way}`]!;
        assert.ok(heads > 10 && heads < text, `${side} ${way} ${heads} ${text}`);
        // A frame of each, and perhaps an empty one that ends the stream.
        const framing = told[`${side}_WIRE_BYTES_${way}`]! - heads - body;
        assert.ok(framing === 18 || framing === 27, `${side} ${way} ${framing}`);
      }
    }
    assertOrdered(told);
  });

  test('of raw connections are all that has passed', async (t) => {
    const server = await counting(t, 'hello', (text) => text === 'body');
    const { port, entry } = await logging(t, server.port, { isRaw: true });
    const socket = connectPlain(port, '127.0.0.1');
    socket.write('body');
    await once(socket, 'data');
    socket.end();
    await once(socket, 'close');
    const told = await entry();
    const { DOWNSTREAM_WIRE_BYTES_RECEIVED, DOWNSTREAM_WIRE_BYTES_SENT } = told;
    const { UPSTREAM_WIRE_BYTES_RECEIVED, UPSTREAM_WIRE_BYTES_SENT } = told;
    assert.deepEqual([DOWNSTREAM_WIRE_BYTES_RECEIVED, DOWNSTREAM_WIRE_BYTES_SENT], [4, 5]);
    assert.deepEqual([UPSTREAM_WIRE_BYTES_RECEIVED, UPSTREAM_WIRE_BYTES_SENT], [5, 4]);
  });
});
