// Heads of HTTP/2 requests beyond the bounds of their connection manager: answered, counted and logged as any request that cannot be
// served, while other streams of the connection go on.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { parseFormat } from '../../src/config/resources/format/format-string.ts';
import { ErrorCode, FrameFlag, FrameType, PREFACE } from '../../src/data-plane/http/codec/http2/frames.ts';
import { eventually } from '../support/eventually.ts';
import { direct, type Http2Bench, http2Bench, settledClient, silentUpstream } from '../support/http2-bench.ts';
import { FrameClient, Http2Client } from '../support/http2-clients.ts';
import { drainedBy } from '../support/http2-program.ts';
import { data, frame, GET, headers, POST } from '../support/http2-session.ts';

const TEXT = 'Request Header Fields Too Large';
const MOST_FIELDS = 5;
const MANY = Array.from({ length: 10 }, (_none, index) => [`x-${index}`, '1'] as const);
const LONG_PATH = `/${'x'.repeat(2000)}`;

function fields(): Record<string, string> {
  return Object.fromEntries(MANY);
}

describe('an HTTP/2 client whose head has too many fields', () => {
  test('is told so, and its other streams go on', async (t) => {
    const { proxy, port } = await http2Bench(t, { maxHeadersCount: MOST_FIELDS });
    const client = new Http2Client(t, port);
    const [refused, other] = await Promise.all([client.fetch({ ':path': '/', ...fields() }), client.get('/direct')]);
    assert.deepEqual([refused.status, refused.body], [431, TEXT]);
    assert.equal(refused.headers['content-type'], 'text/plain');
    assert.equal(refused.headers['content-length'], `${TEXT.length}`);
    assert.equal(refused.headers.server, 'weir');
    assert.equal(other.status, 200);
    assert.equal((await client.get('/direct')).status, 200);
    assert.equal(proxy.httpStat('downstream_rq_too_large'), 1);
    assert.equal(proxy.httpStat('downstream_rq_4xx'), 1);
    assert.equal(proxy.httpStat('downstream_rq_total'), 3);
    assert.equal(proxy.httpStat('downstream_rq_http2_total'), 3);
    assert.equal(proxy.http2Stat('header_overflow'), 1);
    assert.equal(proxy.http2Stat('streams_active'), 0);
  });

  test('gets no content where it has asked for a head alone', async (t) => {
    const { port } = await http2Bench(t, { maxHeadersCount: MOST_FIELDS });
    const client = new Http2Client(t, port);
    const refused = await client.fetch({ ':method': 'HEAD', ':path': '/', ...fields() });
    assert.deepEqual([refused.status, refused.body], [431, '']);
  });

  test('is in the access log', async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'weir-large-heads-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = path.join(folder, 'access.log');
    const { segments } = parseFormat(
      '%PROTOCOL% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %BYTES_SENT%\n',
    );
    const content = { kind: 'text', segments: segments! } as const;
    const destination = { kind: 'file', path: file } as const;
    const accessLogs = [{ destination, format: { content, omitEmptyValues: false }, filter: null }];
    const { proxy, port } = await http2Bench(t, { maxHeadersCount: MOST_FIELDS, accessLogs });
    await new Http2Client(t, port).fetch({ ':path': '/', ...fields() });
    await proxy.close();
    assert.equal(readFileSync(file, 'utf8'), `HTTP/2 431 DPE http2.too_many_headers ${TEXT.length}\n`);
  });

  test("may go on with its content for a while, which is nobody's", async (t) => {
    const here = await http2Bench(t, { maxHeadersCount: MOST_FIELDS });
    const client = await settledClient(t, here);
    client.send(headers(3, [...POST, ...MANY], 0), data(3, 'some'), data(3, 'more', FrameFlag.END_STREAM));
    const last = await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 3);
    assert.deepEqual([last?.payload.toString(), last?.flags], [TEXT, FrameFlag.END_STREAM]);
    client.send(direct(5));
    await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 5);
    assert.deepEqual(
      client.frames.filter(({ type }) => type === FrameType.RST_STREAM || type === FrameType.GOAWAY),
      [],
    );
  });

  test('has the time of a flush to take that', async (t) => {
    const here = await http2Bench(t, { maxHeadersCount: MOST_FIELDS, streamFlushTimeoutMs: 1000 });
    const noWindow = frame(FrameType.SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0]);
    const client = new FrameClient(t, here.port, Buffer.concat([PREFACE, noWindow]));
    client.acknowledge();
    client.send(headers(1, [...GET, ...MANY]));
    await client.ofType(FrameType.HEADERS);
    here.clock.turn(1100);
    assert.equal((await client.ofType(FrameType.RST_STREAM))?.payload.readUInt32BE(0), ErrorCode.CANCEL);
    assert.equal(here.proxy.http2Stat('tx_flush_timeout'), 1);
  });

  test('keeps a connection no longer than any other would', async (t) => {
    const here = await http2Bench(t, { maxHeadersCount: MOST_FIELDS, idleTimeoutMs: 1000 });
    const client = await settledClient(t, here);
    here.clock.turn(900);
    client.send(headers(3, [...GET, ...MANY]));
    await client.find(({ type, streamId }) => type === FrameType.DATA && streamId === 3);
    here.clock.turn(900);
    assert.equal(here.proxy.httpStat('downstream_cx_idle_timeout'), 0);
    here.clock.turn(200);
    await drainedBy(here.clock, client);
    assert.equal(await client.goaway(), ErrorCode.NO_ERROR);
  });

  test('counts for the requests that a connection may carry', async (t) => {
    const connectionLife = { maxDurationMs: 0, maxRequests: 2, endsHttp1WithResponse: false };
    const here = await http2Bench(t, { maxHeadersCount: MOST_FIELDS, connectionLife });
    const client = await settledClient(t, here);
    client.send(headers(3, [...GET, ...MANY]));
    assert.ok(await client.ofType(FrameType.GOAWAY));
    assert.equal(here.proxy.httpStat('downstream_cx_max_requests_reached'), 1);
  });
});

describe('an HTTP/2 client whose head is too long', () => {
  const answered = async (t: TestContext, method: string, here: Http2Bench): Promise<readonly unknown[]> => {
    const { status, body } = await new Http2Client(t, here.port).fetch({ ':method': method, ':path': LONG_PATH });
    return [status, body];
  };

  test('is told so before there is a field', async (t) => {
    const here = await http2Bench(t, { maxRequestHeadersBytes: 1024 });
    assert.deepEqual(await answered(t, 'GET', here), [431, TEXT]);
    assert.deepEqual(await answered(t, 'HEAD', here), [431, '']);
    assert.deepEqual(await answered(t, 'GET', here), [431, TEXT]);
    await eventually(() => here.proxy.httpStat('downstream_rq_completed') === 3, 'all three');
  });

  test('is told so, too, where the block is longer than any that is read, and goes on', async (t) => {
    const here = await http2Bench(t);
    const client = new Http2Client(t, here.port, { maxSendHeaderBlockLength: 1 << 20 });
    const cookies = Array.from({ length: 100 }, (_none, index) => `c${index}=${'x'.repeat(3000)}`);
    for (const cookie of [cookies.join('; '), cookies, 'x'.repeat(500_000)]) {
      const ask = async (method: string) => await client.fetch({ ':method': method, ':path': '/direct', cookie });
      const [refused, bare, other] = await Promise.all([ask('GET'), ask('HEAD'), client.get('/direct')]);
      assert.deepEqual([refused.status, refused.body], [431, TEXT]);
      assert.deepEqual([bare.status, bare.body], [431, '']);
      assert.deepEqual([other.status, other.body], [200, 'direct']);
    }
    assert.equal(here.proxy.httpStat('downstream_rq_too_large'), 6);
    assert.equal(here.proxy.http2Stat('header_overflow'), 6);
    assert.equal(here.proxy.httpStat('downstream_cx_http2_total'), 1);
  });

  test('whose trailers are has its stream reset, and goes on', async (t) => {
    const { port } = await silentUpstream(t);
    const here = await http2Bench(t, {}, { upstreamPort: port });
    const client = new Http2Client(t, here.port, { maxSendHeaderBlockLength: 1 << 20 });
    const stream = client.open({ ':method': 'POST', ':path': '/' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-a': 'a'.repeat(200_000) }));
    stream.on('error', () => {});
    stream.end('x');
    await new Promise((resolve) => stream.once('close', resolve));
    assert.equal(stream.rstCode, ErrorCode.ENHANCE_YOUR_CALM);
    assert.equal((await client.get('/direct')).status, 200);
  });

  test('loses its connection where the block goes on for longer than any that is looked at', async (t) => {
    const here = await http2Bench(t);
    const client = await settledClient(t, here);
    const piece = Buffer.alloc(16_384);
    const rest = Array.from({ length: 64 }, () => frame(FrameType.CONTINUATION, 0, 3, piece));
    client.send(frame(FrameType.HEADERS, FrameFlag.END_STREAM, 3, piece), ...rest);
    assert.equal(await client.goaway(), ErrorCode.ENHANCE_YOUR_CALM);
    await client.ended();
    assert.equal(here.proxy.httpStat('downstream_cx_protocol_error'), 1);
  });
});
