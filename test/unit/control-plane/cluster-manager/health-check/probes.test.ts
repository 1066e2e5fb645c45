// Checks by HTTP against servers that answer well, badly, half or not at all.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { HttpProbe } from '../../../../../src/control-plane/cluster-manager/health-check/http-probe.ts';
import type { ProbeResult } from '../../../../../src/control-plane/cluster-manager/health-check/probe.ts';
import type { HttpProbeSettings } from '../../../../../src/snapshot/index.ts';
import { compileHttp1, Http1Codec } from '../../../../../src/wasm/http1.ts';
import { eventually } from '../../../../support/eventually.ts';
import { NO_FAULTS } from '../../../../support/faults.ts';
import { answer, type Behaviour, floodOf, HealthServer } from '../../../../support/health-server.ts';
import { ask, resultOf } from '../../../../support/probes.ts';
import { unusedPort } from '../../../../support/wire.ts';

const codec = new Http1Codec(compileHttp1());

function httpProbe(settings: Partial<HttpProbeSettings> = {}, reuses = true, verifies = true): HttpProbe {
  const defaults: HttpProbeSettings = {
    kind: 'http',
    method: 'GET',
    path: '/up',
    authority: 'web',
    body: Buffer.alloc(0),
    headersToAdd: [],
    headersToRemove: [],
    expectedStatuses: [{ start: 200, end: 201 }],
    retriableStatuses: [],
    receive: [],
    responseBufferBytes: 1024,
    serviceName: undefined,
  };
  return new HttpProbe({ ...defaults, ...settings }, reuses, undefined, {
    faults: NO_FAULTS,
    codec,
    verifiesService: () => verifies,
  });
}

const MEBIBYTE = 1024 * 1024;
const TOO_LONG = { kind: 'broken', detail: 'no end of the answer within 4194304 bytes' };
const PASSED = { kind: 'passed', isDegraded: false, detail: 'HTTP 200' };
const wrong = (detail: string, fields: object = {}): object => ({
  kind: 'wrong',
  isRetriable: false,
  isImmediate: false,
  detail,
  ...fields,
});
const raw =
  (text: string, ends = false): Behaviour =>
  (socket) =>
    ends ? socket.end(text, 'latin1') : socket.write(text, 'latin1');

describe('a check by HTTP', () => {
  it('asks for what it is told to, with the headers that it is told to send', async () => {
    await using server = await HealthServer.start(answer(200));
    const probe = httpProbe({
      method: 'POST',
      path: '/live?x=1',
      body: Buffer.from('ping'),
      headersToAdd: [
        { name: 'user-agent', value: 'mine', appends: false },
        { name: 'x-one', value: 'a', appends: true },
        { name: 'x-one', value: 'b', appends: true },
      ],
      headersToRemove: ['host'],
    });
    assert.deepEqual(await ask(probe, server.port), PASSED);
    assert.deepEqual(server.received, [
      'POST /live?x=1 HTTP/1.1\r\ncontent-length: 4\r\nuser-agent: mine\r\nx-one: a\r\nx-one: b\r\n\r\nping',
    ]);
    probe.abort();
  });

  it('names the host, itself, and a connection that it will not keep', async () => {
    await using server = await HealthServer.start(answer(200));
    const probe = httpProbe({}, false);
    await ask(probe, server.port, 'other.test');
    await ask(probe, server.port, 'third.test');
    const request = (host: string): string =>
      `GET /up HTTP/1.1\r\nhost: ${host}\r\nuser-agent: weir/HC\r\nconnection: close\r\n\r\n`;
    assert.deepEqual(server.received, [request('other.test'), request('third.test')]);
    assert.equal(server.connections, 2);
  });

  const cases: readonly {
    readonly name: string;
    readonly behaviour: Behaviour;
    readonly settings?: Partial<HttpProbeSettings>;
    readonly verifies?: boolean;
    readonly expected: object;
  }[] = [
    { name: 'passes with 200', behaviour: answer(200), expected: PASSED },
    { name: 'fails with any other status', behaviour: answer(204), expected: wrong('HTTP 204') },
    {
      name: 'passes with what is expected',
      settings: {
        expectedStatuses: [
          { start: 100, end: 101 },
          { start: 204, end: 302 },
        ],
      },
      behaviour: answer(301),
      expected: { ...PASSED, detail: 'HTTP 301' },
    },
    {
      name: 'does not expect the end of a range',
      settings: { expectedStatuses: [{ start: 200, end: 204 }] },
      behaviour: answer(204),
      expected: wrong('HTTP 204'),
    },
    {
      name: 'does not expect what lies below a range',
      settings: { expectedStatuses: [{ start: 201, end: 300 }] },
      behaviour: answer(200),
      expected: wrong('HTTP 200'),
    },
    {
      name: 'says of a status that it may be tried again',
      settings: { retriableStatuses: [{ start: 500, end: 600 }] },
      behaviour: answer(503),
      expected: wrong('HTTP 503', { isRetriable: true }),
    },
    {
      name: 'hears that a host is degraded, in either spelling',
      behaviour: answer(200, 'x-envoy-degraded: 1\r\n'),
      expected: { ...PASSED, isDegraded: true },
    },
    {
      name: 'hears that a host wants to be left out',
      behaviour: answer(503, 'x-proxy-immediate-health-check-fail: true\r\n'),
      expected: wrong('HTTP 503', { isImmediate: true }),
    },
    {
      name: 'finds what it expects in a body in chunks',
      settings: { receive: [Buffer.from('al'), Buffer.from('ive')] },
      behaviour: raw(
        'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nal\r\n4\r\n iv \r\n3\r\nive\r\n0\r\n\r\n',
      ),
      expected: PASSED,
    },
    {
      name: 'does not take the sizes of chunks for a body',
      settings: { receive: [Buffer.from('2')] },
      behaviour: raw('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nal\r\n0\r\n\r\n'),
      expected: wrong('HTTP 200 without the expected body'),
    },
    {
      name: 'takes a body in broken chunks for a failure',
      behaviour: raw('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nz\r\n'),
      expected: { kind: 'broken', detail: 'no HTTP: chunk_size_invalid' },
    },
    {
      name: 'looks no further than it is told to, however the body is cut',
      settings: { receive: [Buffer.from('f')], responseBufferBytes: 4 },
      behaviour: raw('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n'),
      expected: wrong('HTTP 200 without the expected body'),
    },
    {
      name: 'takes an answer that names no service for one of another',
      settings: { serviceName: { kind: 'prefix', value: 'web', ignoresCase: false } },
      behaviour: answer(200),
      expected: wrong('HTTP 200 of another service: ""'),
    },
    {
      name: 'looks no further than it is told to',
      settings: { receive: [Buffer.from('alive')], responseBufferBytes: 6 },
      behaviour: answer(200, '', '  alive'),
      expected: wrong('HTTP 200 without the expected body'),
    },
    {
      name: 'takes the answer of another service for a failure',
      settings: { serviceName: { kind: 'prefix', value: 'web', ignoresCase: false } },
      behaviour: answer(200, 'x-proxy-upstream-healthchecked-cluster: db\r\n'),
      expected: wrong('HTTP 200 of another service: "db"'),
    },
    {
      name: 'knows its service by the beginning of the name',
      settings: { serviceName: { kind: 'prefix', value: 'web', ignoresCase: false } },
      behaviour: answer(200, 'x-envoy-upstream-healthchecked-cluster: web-7\r\n'),
      expected: PASSED,
    },
    {
      name: 'does not look at the service when it is told not to',
      settings: { serviceName: { kind: 'exact', value: 'web', ignoresCase: false } },
      verifies: false,
      behaviour: answer(200),
      expected: PASSED,
    },
    {
      name: 'has no body to wait for after HEAD',
      settings: { method: 'HEAD' },
      behaviour: raw('HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n'),
      expected: PASSED,
    },
    {
      name: 'passes over interim answers',
      behaviour: raw(
        'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
      ),
      expected: PASSED,
    },
    {
      name: 'passes over ten interim answers',
      behaviour: raw(`${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(10)}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`),
      expected: PASSED,
    },
    {
      name: 'gives up after more than ten of them',
      behaviour: raw(`${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(11)}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`),
      expected: { kind: 'broken', detail: 'interim answers without end' },
    },
    {
      name: 'waits for a body of a megabyte, and takes less of it for no answer',
      behaviour: (socket) => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${2 * MEBIBYTE}\r\n\r\n`);
        socket.end(Buffer.alloc(MEBIBYTE));
      },
      expected: { kind: 'broken', detail: 'closed in the middle of the answer' },
    },
    {
      name: 'gives up interim answers without end',
      behaviour: raw('HTTP/1.1 100 Continue\r\n\r\n'.repeat(100)),
      expected: { kind: 'broken', detail: 'interim answers without end' },
    },
    {
      name: 'takes a body that ends with its connection',
      settings: { receive: [Buffer.from('ok')] },
      behaviour: raw('HTTP/1.0 200 OK\r\n\r\nok', true),
      expected: PASSED,
    },
    {
      name: 'takes half an answer for none',
      behaviour: raw('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf', true),
      expected: { kind: 'broken', detail: 'closed in the middle of the answer' },
    },
    {
      name: 'takes half a head for none',
      behaviour: raw('HTTP/1.1 200 OK\r\ncontent-le', true),
      expected: { kind: 'broken', detail: 'closed before the answer' },
    },
    {
      name: 'takes a reset in a body without an end for a failure',
      behaviour: (socket) => {
        socket.write('HTTP/1.0 200 OK\r\n\r\nok', () => socket.resetAndDestroy());
      },
      expected: { kind: 'broken', detail: 'ECONNRESET' },
    },
    {
      name: 'takes what is no HTTP for a failure',
      behaviour: raw('SSH-2.0-OpenSSH_9.6\r\n'),
      expected: { kind: 'broken', detail: 'no HTTP: status_line_invalid' },
    },
    {
      name: 'takes an answer with two lengths for a failure',
      behaviour: raw('HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'),
      expected: { kind: 'broken', detail: 'no HTTP: content_length_repeated' },
    },
    {
      name: 'gives up a head without end',
      behaviour: raw(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(200_000)}`),
      expected: { kind: 'broken', detail: 'no HTTP: head_too_large' },
    },
    {
      name: 'does not wait for what follows a switch of protocols',
      settings: { expectedStatuses: [{ start: 101, end: 102 }] },
      behaviour: raw('HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: y\r\n\r\n'),
      expected: { ...PASSED, detail: 'HTTP 101' },
    },
  ];
  for (const { name, behaviour, settings, verifies = true, expected } of cases) {
    it(name, async () => {
      assert.deepEqual(await resultOf(httpProbe(settings, true, verifies), behaviour), expected);
    });
  }

  it('reads an answer that comes byte by byte', async () => {
    const text = 'HTTP/1.1 100 x\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n';
    const behaviour: Behaviour = (socket) => {
      const next = (at: number): void => {
        if (at < text.length) socket.write(text[at]!, () => setImmediate(next, at + 1));
      };
      next(0);
    };
    assert.deepEqual(await resultOf(httpProbe({ receive: [Buffer.from('abc')] }), behaviour), PASSED);
  });

  it('waits for the end of a long body', async () => {
    const body = 'x'.repeat(3 * MEBIBYTE);
    assert.deepEqual(await resultOf(httpProbe(), answer(200, '', body)), PASSED);
  });

  it('fails at an answer of a gigabyte after the first megabytes, and closes', async () => {
    const { behaviour, isClosed } = floodOf(1024, `HTTP/1.1 200 OK\r\ncontent-length: ${1024 * MEBIBYTE}\r\n\r\n`);
    await using server = await HealthServer.start(behaviour);
    assert.deepEqual(await ask(httpProbe(), server.port), TOO_LONG);
    assert.ok((await isClosed) < 200);
  });

  it('keeps its connection, unless the answer says otherwise or is followed by something', async () => {
    await using server = await HealthServer.start(answer(200));
    const probe = httpProbe();
    for (let count = 0; count < 3; count++) assert.deepEqual(await ask(probe, server.port), PASSED);
    assert.equal(server.connections, 1);
    server.behaviour = answer(200, 'connection: close\r\n');
    await ask(probe, server.port);
    await ask(probe, server.port);
    assert.equal(server.connections, 2);
    server.behaviour = raw('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab');
    await ask(probe, server.port);
    await ask(probe, server.port);
    assert.equal(server.connections, 4);
    // Nor is there one after a switch of protocols, or where the end of the connection is the end of the body.
    server.behaviour = raw('HTTP/1.1 101 x\r\nconnection: upgrade\r\nupgrade: y\r\n\r\n');
    await ask(probe, server.port);
    server.behaviour = raw('HTTP/1.1 200 OK\r\n\r\n', true);
    await ask(probe, server.port);
    await ask(probe, server.port);
    assert.equal(server.connections, 7);
    probe.abort();
  });

  it('sends the bytes of names and headers as the configuration has them', async () => {
    await using server = await HealthServer.start(answer(200));
    // Values of headers are byte text by then; names are not.
    const value = Buffer.from('ü').toString('latin1');
    const probe = httpProbe({ headersToAdd: [{ name: 'x', value, appends: true }] });
    // The last byte of Ċ, U+010A, alone would be a line feed.
    await ask(probe, server.port, 'aĊ.test');
    const request = 'GET /up HTTP/1.1\r\nhost: aĊ.test\r\nuser-agent: weir/HC\r\nx: ü\r\n\r\n';
    assert.deepEqual(server.received, [Buffer.from(request).toString('latin1')]);
    probe.abort();
  });

  it('asks each authority by its own name, on the connection that it has', async () => {
    await using server = await HealthServer.start(answer(200));
    const probe = httpProbe();
    for (const authority of ['a.test', 'a.test', 'b.test']) await ask(probe, server.port, authority);
    const hosts = server.received.map((request) => /^host: (.*)\r$/m.exec(request)?.[1]);
    assert.deepEqual([hosts, server.connections], [['a.test', 'a.test', 'b.test'], 1]);
    probe.abort();
  });

  it('goes to another address on another connection, and closes the first', async () => {
    await using first = await HealthServer.start(answer(200));
    await using second = await HealthServer.start(answer(503));
    const probe = httpProbe();
    assert.deepEqual(await ask(probe, first.port), PASSED);
    assert.deepEqual(await ask(probe, second.port), wrong('HTTP 503'));
    await eventually(() => first.openConnections === 0, 'the end of the first connection');
    probe.abort();
    await eventually(() => second.openConnections === 0, 'the end of the second connection');
  });

  it('tells nothing of an answer that comes after it is aborted', async () => {
    const { promise: isAsked, resolve: onAsked } = Promise.withResolvers<Socket>();
    await using server = await HealthServer.start((socket) => onAsked(socket));
    const probe = httpProbe();
    const results: ProbeResult[] = [];
    const target = { address: { kind: 'ip', ip: '127.0.0.1', port: server.port }, authority: '' } as const;
    probe.check(target, (result) => results.push(result));
    answer(200)(await isAsked, '\r\n\r\n');
    probe.abort();
    server.behaviour = answer(200);
    assert.deepEqual(await ask(probe, server.port), PASSED);
    assert.deepEqual(results, []);
    probe.abort();
  });

  it('makes a new connection when a kept one turns out to have gone', async () => {
    await using server = await HealthServer.start(answer(200));
    const probe = httpProbe();
    await ask(probe, server.port);
    // It closes the kept connection when the next request comes, and answers on the new one.
    server.behaviour = (socket) => {
      server.behaviour = answer(200);
      socket.destroy();
    };
    assert.deepEqual(await ask(probe, server.port), PASSED);
    assert.equal(server.connections, 2);
    // A connection that is new has no such excuse.
    probe.abort();
    server.behaviour = (socket) => socket.destroy();
    assert.equal((await ask(probe, server.port)).kind, 'broken');
    assert.equal(server.connections, 3);
  });

  it('makes no second one when that goes as well, nor when an answer has begun', async () => {
    await using server = await HealthServer.start(answer(200));
    const probe = httpProbe();
    await ask(probe, server.port);
    server.behaviour = (socket) => socket.destroy();
    assert.equal((await ask(probe, server.port)).kind, 'broken');
    assert.equal(server.connections, 2);
    server.behaviour = answer(200);
    await ask(probe, server.port);
    server.behaviour = raw('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf', true);
    const half = { kind: 'broken', detail: 'closed in the middle of the answer' };
    assert.deepEqual(await ask(probe, server.port), half);
    assert.equal(server.connections, 3);
  });

  it('closes a connection on which something comes between checks', async () => {
    const { promise: isClosed, resolve: onClosed } = Promise.withResolvers<void>();
    await using server = await HealthServer.start((socket) => {
      socket.on('close', onClosed);
      answer(200)(socket, '\r\n\r\n');
    });
    const probe = httpProbe();
    await ask(probe, server.port);
    server.greetAll('HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n');
    await isClosed;
    assert.deepEqual(await ask(probe, server.port), PASSED);
    assert.equal(server.connections, 2);
    probe.abort();
  });

  it('says why it could not connect', async () => {
    assert.deepEqual(await ask(httpProbe(), await unusedPort()), { kind: 'broken', detail: 'ECONNREFUSED' });
  });

  it('asks over a unix socket', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-check-'));
    const server = createServer((socket) => socket.on('data', () => answer(200)(socket, '\r\n\r\n')));
    server.listen(path.join(folder, 'a'));
    await once(server, 'listening');
    const probe = httpProbe();
    const address = { kind: 'pipe', path: path.join(folder, 'a'), mode: 0 } as const;
    const result = await new Promise((resolve) => probe.check({ address, authority: 'web' }, resolve));
    assert.deepEqual(result, PASSED);
    probe.abort();
    server.close();
    rmSync(folder, { recursive: true });
  });
});
