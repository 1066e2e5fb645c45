// One call that stays open, to a real server of HTTP/2.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { constants, createServer, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { SYSTEM_CLOCK } from '../../../../src/base/clock.ts';
import { GrpcStream } from '../../../../src/control-plane/grpc/grpc-stream.ts';
import { within } from '../../../support/eventually.ts';
import { NO_FAULTS } from '../../../support/faults.ts';

/** @returns why it has ended, and whether there was a reason. */
async function endOf(
  t: TestContext,
  answer: (stream: ServerHttp2Stream) => void,
  bytes: number,
): Promise<string | undefined> {
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream) => {
    // Of a client that goes.
    stream.on('error', () => {});
    answer(stream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ended = Promise.withResolvers<string | undefined>();
  const request = {
    path: '/a.B/C',
    authority: 'a',
    metadata: [],
    maxMessageBytes: 0,
    connectTimeoutMs: 60_000,
    keepalive: null,
  };
  const call = new GrpcStream(
    ({ onOpen, onLost }) => {
      const socket = connect(port, '127.0.0.1', () => onOpen(socket));
      socket.on('close', () => onLost(undefined)).on('error', () => {});
      return socket;
    },
    request,
    { clock: SYSTEM_CLOCK, faults: NO_FAULTS },
    {
      onOpen: () => call.send(new Uint8Array(bytes)),
      onMessage() {},
      onDrain() {},
      onEnd: ended.resolve,
    },
  );
  t.after(() => {
    call.close();
    server.close();
  });
  return await within(ended.promise, () => 'the end of the call');
}

function status(stream: ServerHttp2Stream, code: string): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': code }));
  stream.end();
}

function paused(stream: ServerHttp2Stream): ServerHttp2Stream {
  stream.pause();
  return stream;
}

/** More than the server takes without reading. */
const MANY = 200_000;

test('a call is over with its status, also where the server reads nothing of what is on its way', async (t) => {
  assert.equal(await endOf(t, (stream) => status(paused(stream), '0'), MANY), undefined);
  assert.equal(await endOf(t, (stream) => status(paused(stream), '14'), MANY), 'gRPC status 14');
});

test('a call whose server has read all ends by its status, too', async (t) => {
  assert.equal(
    await endOf(
      t,
      (stream) =>
        status(
          stream.on('data', () => {}),
          '0',
        ),
      100,
    ),
    undefined,
  );
});

test('a call that is reset says by what', async (t) => {
  const reset = await endOf(t, (stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM), MANY);
  assert.equal(reset, 'ERR_HTTP2_STREAM_ERROR');
});

test('a call that ends without a status says so', async (t) => {
  const end = (stream: ServerHttp2Stream): void => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.end();
  };
  assert.equal(await endOf(t, (stream) => end(paused(stream)), MANY), 'it has ended without a status');
});
