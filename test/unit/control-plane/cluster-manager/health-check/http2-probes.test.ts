// Checks by HTTP/2 and gRPC of servers that do not do their part.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { GrpcProbe } from '../../../../../src/control-plane/cluster-manager/health-check/grpc-probe.ts';
import { Http2Probe } from '../../../../../src/control-plane/cluster-manager/health-check/http2-probe.ts';
import type { Probe, ProbeResult } from '../../../../../src/control-plane/cluster-manager/health-check/probe.ts';
import type { HttpProbeSettings } from '../../../../../src/snapshot/index.ts';
import { eventually } from '../../../../support/eventually.ts';
import { NO_FAULTS } from '../../../../support/faults.ts';
import { answer, HealthServer } from '../../../../support/health-server.ts';
import { ask } from '../../../../support/probes.ts';

type Behaviour = (stream: ServerHttp2Stream, session: ServerHttp2Session) => void;

class Http2HealthServer implements AsyncDisposable {
  readonly sessions: ServerHttp2Session[] = [];
  behaviour: Behaviour;
  readonly #server: Http2Server;

  private constructor(server: Http2Server, behaviour: Behaviour) {
    this.#server = server;
    this.behaviour = behaviour;
    server.on('session', (session) => {
      session.on('error', () => {});
      this.sessions.push(session);
    });
    server.on('stream', (stream: ServerHttp2Stream) => {
      stream.on('error', () => {});
      this.behaviour(stream, this.sessions.at(-1)!);
    });
  }

  static async start(behaviour: Behaviour): Promise<Http2HealthServer> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Http2HealthServer(server, behaviour);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.sessions) session.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

const SETTINGS: HttpProbeSettings = {
  kind: 'http',
  speaksHttp2: true,
  method: 'GET',
  path: '/up',
  authority: 'web',
  body: Buffer.alloc(0),
  headersToAdd: [],
  headersToRemove: [],
  expectedStatuses: [{ start: 200, end: 201 }],
  retriableStatuses: [{ start: 429, end: 430 }],
  receive: [],
  responseBufferBytes: 1024,
  serviceName: undefined,
};

function httpProbe(settings: Partial<HttpProbeSettings> = {}, reusesConnection = true): Probe {
  const tools = { faults: NO_FAULTS, headerPrefix: 'x-proxy', verifiesService: () => true };
  return new Http2Probe({ ...SETTINGS, ...settings }, reusesConnection, undefined, tools);
}

function grpcProbe(): Probe {
  const settings = { kind: 'grpc', serviceName: '', authority: 'web', headersToAdd: [], headersToRemove: [] } as const;
  return new GrpcProbe(settings, true, undefined, NO_FAULTS);
}

/** Of one check, without what follows from its kind. */
async function resultOf(probe: Probe, behaviour: Behaviour): Promise<ProbeResult> {
  await using server = await Http2HealthServer.start(behaviour);
  const result = await ask(probe, server.port);
  probe.abort();
  return result;
}

const respond =
  (headers: Record<string, string | number>, body = ''): Behaviour =>
  (stream) => {
    stream.respond(headers);
    stream.end(body);
  };
const WELL = respond({ ':status': 200 });

describe('a check by HTTP/2', () => {
  it('is judged as one by HTTP/1 is', async () => {
    const wrong = { kind: 'wrong', isRetriable: false, isImmediate: false };
    assert.deepEqual(await resultOf(httpProbe(), WELL), { kind: 'passed', isDegraded: false, detail: 'HTTP 200' });
    assert.deepEqual(await resultOf(httpProbe(), respond({ ':status': 200, 'x-proxy-degraded': '' })), {
      kind: 'passed',
      isDegraded: true,
      detail: 'HTTP 200',
    });
    assert.deepEqual(
      await resultOf(httpProbe(), respond({ ':status': 503, 'x-proxy-immediate-health-check-fail': '1' })),
      {
        ...wrong,
        isImmediate: true,
        detail: 'HTTP 503',
      },
    );
    assert.deepEqual(await resultOf(httpProbe(), respond({ ':status': 429 })), {
      ...wrong,
      isRetriable: true,
      detail: 'HTTP 429',
    });
    const serviceName = { kind: 'prefix', value: 'shop', ignoresCase: false } as const;
    const cluster = 'x-proxy-upstream-healthchecked-cluster';
    const ofShop = await resultOf(httpProbe({ serviceName }), respond({ ':status': 200, [cluster]: 'shop-1' }));
    assert.equal(ofShop.kind, 'passed');
    assert.equal((await resultOf(httpProbe({ serviceName }), WELL)).kind, 'wrong');
    const receive = [Buffer.from('well')];
    assert.equal((await resultOf(httpProbe({ receive }), respond({ ':status': 200 }, 'all well'))).kind, 'passed');
    assert.equal(
      (await resultOf(httpProbe({ receive, responseBufferBytes: 5 }), respond({ ':status': 200 }, 'all well'))).kind,
      'wrong',
    );
  });

  it('ends behind a GOAWAY, and the next one has another connection', async () => {
    await using server = await Http2HealthServer.start((stream, session) => {
      session.goaway(0, stream.id);
      setImmediate(() => WELL(stream, session));
    });
    const probe = httpProbe();
    for (const connections of [1, 2]) {
      assert.equal((await ask(probe, server.port)).kind, 'passed');
      assert.equal(server.sessions.length, connections);
    }
    probe.abort();
  });

  it('goes nowhere near a connection whose end was announced, however soon it comes', async () => {
    await using server = await Http2HealthServer.start((stream, session) => {
      session.goaway(0, stream.id);
      setImmediate(() => WELL(stream, session));
    });
    const probe = httpProbe();
    const target = { address: { kind: 'ip', ip: '127.0.0.1', port: server.port }, authority: 'web' } as const;
    const { promise, resolve } = Promise.withResolvers<ProbeResult>();
    // In the same turn as the end of the first.
    probe.check(target, () => probe.check(target, resolve));
    assert.equal((await promise).kind, 'passed');
    assert.equal(server.sessions.length, 2);
    probe.abort();
  });

  it('is broken where a kept connection ends in the middle of the answer', async () => {
    await using server = await Http2HealthServer.start(WELL);
    const probe = httpProbe();
    await ask(probe, server.port);
    server.behaviour = (stream, session) => {
      stream.respond({ ':status': 200 });
      stream.write('a', () => session.destroy());
    };
    assert.equal((await ask(probe, server.port)).kind, 'broken');
    assert.equal(server.sessions.length, 1);
    probe.abort();
  });

  it('has a new connection where the kept one was closed meanwhile, and fails where that is closed, too', async () => {
    await using server = await Http2HealthServer.start(WELL);
    const probe = httpProbe();
    assert.equal((await ask(probe, server.port)).kind, 'passed');
    assert.equal((await ask(probe, server.port)).kind, 'passed');
    assert.equal(server.sessions.length, 1);
    let streams = 0;
    server.behaviour = (stream, session) => {
      streams += 1;
      if (streams === 1) session.destroy();
      else WELL(stream, session);
    };
    assert.equal((await ask(probe, server.port)).kind, 'passed');
    assert.deepEqual([streams, server.sessions.length], [2, 2]);
    server.behaviour = (_stream, session) => session.destroy();
    assert.equal((await ask(probe, server.port)).kind, 'broken');
    assert.equal(server.sessions.length, 3);
    probe.abort();
  });

  it('keeps no connection where it is told not to', async () => {
    await using server = await Http2HealthServer.start(WELL);
    const probe = httpProbe({}, false);
    for (let checks = 0; checks < 2; checks++) await ask(probe, server.port);
    assert.equal(server.sessions.length, 2);
    await eventually(() => server.sessions.every(({ destroyed }) => destroyed), 'closed connections');
  });

  it('is broken by what is no answer', async () => {
    const reset = await resultOf(httpProbe(), (stream) => stream.close(2));
    assert.deepEqual(reset, { kind: 'broken', detail: 'ERR_HTTP2_STREAM_ERROR' });
    const goaway = await resultOf(httpProbe(), (_stream, session) => session.goaway(11));
    assert.deepEqual(goaway, { kind: 'broken', detail: 'GOAWAY with error 11' });
    const flood = await resultOf(httpProbe(), respond({ ':status': 200 }, 'x'.repeat(5 * 1024 * 1024)));
    assert.match(flood.detail, /^no end of the answer within/);
    await using older = await HealthServer.start(answer(200));
    const probe = httpProbe();
    assert.equal((await ask(probe, older.port)).kind, 'broken');
    assert.equal((await ask(probe, 1)).detail, 'ECONNREFUSED');
  });

  it('tells nothing once it is aborted, and leaves no connection', async () => {
    await using server = await Http2HealthServer.start(() => {});
    const probe = httpProbe();
    let told = 0;
    probe.check({ address: { kind: 'ip', ip: '127.0.0.1', port: server.port }, authority: 'web' }, () => (told += 1));
    await eventually(() => server.sessions.length === 1, 'a connection');
    probe.abort();
    await eventually(() => server.sessions[0]!.destroyed, 'its end');
    assert.equal(told, 0);
  });
});

describe('a check by gRPC', () => {
  const call = (body: readonly number[], trailers: Record<string, string>, head: object = {}): Behaviour => {
    return (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...head }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers(trailers));
      stream.end(Buffer.from(body));
    };
  };
  const OK = { 'grpc-status': '0' };
  const frame = (...message: number[]): number[] => [0, 0, 0, 0, message.length, ...message];

  const cases: readonly (readonly [answer: string, behaviour: Behaviour, detail: string])[] = [
    ['SERVING', call(frame(8, 1), OK), 'gRPC SERVING'],
    ['SERVING among fields of later versions', call(frame(0x12, 1, 65, 8, 1), OK), 'gRPC SERVING'],
    ['no status at all', call(frame(), OK), 'gRPC UNKNOWN'],
    ['NOT_SERVING', call(frame(8, 2), OK), 'gRPC NOT_SERVING'],
    ['SERVICE_UNKNOWN', call(frame(8, 3), OK), 'gRPC SERVICE_UNKNOWN'],
    ['a status of later versions', call(frame(8, 9), OK), 'gRPC 9'],
    ['SERVING with another grpc-status', call(frame(8, 1), { 'grpc-status': '13' }), 'gRPC status 13'],
    [
      'a failure in the head alone',
      respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': 12, 'grpc-message': 'no' }),
      'gRPC status 12 (no)',
    ],
    ['no grpc-status', call(frame(8, 1), {}), 'an answer without grpc-status'],
    ['HTTP', respond({ ':status': 503 }), 'HTTP 503, which is no gRPC'],
    ['another type', call(frame(8, 1), OK, { 'content-type': 'text/html' }), 'an answer that is no gRPC'],
    ['a message that is cut', call(frame(8, 1).slice(0, -1), OK), 'gRPC without a message of the health service'],
    ['a message that is none', call(frame(0xff), OK), 'gRPC without a message of the health service'],
    ['two messages', call([...frame(8, 1), ...frame(8, 1)], OK), 'gRPC without a message of the health service'],
    [
      'a message that is said to be huge',
      call([0, 127, 255, 255, 255, 8, 1], OK),
      'gRPC without a message of the health service',
    ],
    ['nothing but a good grpc-status', call([], OK), 'gRPC without a message of the health service'],
    ['a grpc-status that is no number', call(frame(8, 1), { 'grpc-status': 'x' }), 'gRPC status x'],
    ['a compressed message', call([1, ...frame(8, 1).slice(1)], OK), 'gRPC without a message of the health service'],
  ];
  for (const [name, behaviour, detail] of cases) {
    it(`is answered by ${name}`, async () => {
      const result = await resultOf(grpcProbe(), behaviour);
      assert.deepEqual([result.kind, result.detail], [detail === 'gRPC SERVING' ? 'passed' : 'wrong', detail]);
    });
  }
});
