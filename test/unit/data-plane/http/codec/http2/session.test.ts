import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FrameFlag, FrameType } from '../../../../../../src/data-plane/http/codec/http2/frames.ts';
import type { SessionStream } from '../../../../../../src/data-plane/http/codec/http2/session-stream.ts';
import {
  data,
  type Frame,
  frame,
  headers,
  POST,
  SETTINGS,
  TestSession,
  word,
} from '../../../../../support/http2-session.ts';

const bodyOf = (frames: readonly Frame[], streamId: number): string =>
  frames
    .filter((one) => one.type === FrameType.DATA && one.streamId === streamId)
    .map(({ payload }) => payload.toString())
    .join('');
const typesOf = (frames: readonly Frame[]): number[] => frames.map(({ type }) => type);
const windowUpdate = (streamId: number, increment: number): Buffer =>
  frame(FrameType.WINDOW_UPDATE, 0, streamId, word(increment));
const initialWindow = (bytes: number): Buffer =>
  frame(FrameType.SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), word(bytes)]));
const send = (test: TestSession, stream: SessionStream, text: string, isEnd: boolean, trailers?: string): boolean => {
  const bytes = Buffer.from(text);
  return test.session.send(stream, bytes, 0, bytes.length, isEnd, trailers);
};

describe('a session of a server', () => {
  function asked(setting = SETTINGS): { test: TestSession; stream: SessionStream } {
    const test = TestSession.server().feed(setting, headers(1));
    test.take();
    const stream = test.streams[0]!;
    assert.equal(test.session.respondLines(stream, 200, 'a: b\r\n', false), 0);
    return { test, stream };
  }

  it('answers with a head, content and trailers in one write', () => {
    const { test, stream } = asked();
    assert.equal(send(test, stream, 'body', true, 'x: y\r\n'), true);
    const frames = test.take();
    assert.deepEqual(typesOf(frames), [FrameType.HEADERS, FrameType.DATA, FrameType.HEADERS]);
    assert.deepEqual(
      frames.map(({ flags }) => flags & FrameFlag.END_STREAM),
      [0, 0, 1],
    );
    assert.equal(test.session.streamCount, 0);
    assert.equal(test.events.at(-1), 'idle');
  });

  it('sends no more than the windows allow, and the rest when they open', () => {
    const { test, stream } = asked(initialWindow(10));
    assert.equal(send(test, stream, '0123456789abcde', true), false);
    assert.equal(bodyOf(test.take(), 1), '0123456789');
    test.feed(windowUpdate(1, 3));
    assert.equal(bodyOf(test.take(), 1), 'abc');
    // A smaller window makes what is left negative (RFC 9113 section 6.9.2).
    test.feed(initialWindow(5), windowUpdate(1, 4));
    assert.equal(bodyOf(test.take(), 1), '');
    test.feed(windowUpdate(1, 2));
    assert.equal(bodyOf(test.take(), 1), 'd');
    test.feed(windowUpdate(1, 100));
    const last = test.take();
    assert.equal(bodyOf(last, 1), 'e');
    assert.equal(last.at(-1)!.flags & FrameFlag.END_STREAM, 1);
    assert.deepEqual(test.events.slice(-2), ['idle', '1 writable']);
  });

  it('sends once what several frames of a read make room for', () => {
    const { test, stream } = asked(initialWindow(0));
    assert.equal(send(test, stream, 'abcd', false), false);
    test.feed(windowUpdate(1, 1), initialWindow(1), windowUpdate(1, 1), initialWindow(0), initialWindow(1));
    const sent = test.take().filter(({ type }) => type === FrameType.DATA);
    assert.deepEqual(
      sent.map(({ payload }) => payload.toString()),
      ['abc'],
    );
  });

  it('takes no settings that give a stream more than there can be, and any for those that are no more', () => {
    const most = 2 ** 31 - 1;
    const { test, stream } = asked();
    test.feed(windowUpdate(1, most - 65535), initialWindow(65536));
    assert.equal(test.fault?.reason, 'http2_window_overflow');

    const other = asked(initialWindow(0));
    other.test.feed(windowUpdate(1, most), initialWindow(0));
    assert.equal(other.test.fault, null);
    assert.equal(send(other.test, other.stream, 'x', false), true);
    // It has used one of them.
    other.test.feed(initialWindow(1));
    assert.equal(other.test.fault, null);
    other.test.session.reset(other.stream, 8);
    other.test.feed(headers(3), initialWindow(most));
    assert.equal(other.test.fault, null);
    other.test.feed(windowUpdate(3, 1));
    assert.equal(other.test.streams[1]!.isListed, false);
    assert.equal(stream.isListed, false);
  });

  it('reads settings of a client as fast when many streams run as when one does', () => {
    const cpuMs = (streams: number): number => {
      const opened = Array.from({ length: streams }, (_, at) => headers(1 + 2 * at, POST, 0));
      const test = TestSession.server({ maxOutboundControlFrames: 10_000 }).feed(...opened);
      const flood = Array.from({ length: 4000 }, (_, at) => initialWindow(at % 2));
      const begin = process.cpuUsage();
      test.feed(...flood);
      const { user, system } = process.cpuUsage(begin);
      assert.equal(test.fault, null);
      return (user + system) / 1000;
    };
    const least = (streams: number): number => Math.min(...Array.from({ length: 3 }, () => cpuMs(streams)));
    const [one, many] = [least(1), least(1000)];
    assert.ok(many < 10 * one + 20, `${many} ms, and ${one} ms with one stream`);
  });

  it('shares the window of the connection between streams, a frame each in turn', () => {
    const wide = initialWindow(10 ** 6);
    const test = TestSession.server().feed(wide, headers(1), headers(3));
    for (const stream of test.streams) test.session.respondLines(stream, 200, '', false);
    const body = 'x'.repeat(100_000);
    for (const stream of test.streams) assert.equal(send(test, stream, body, true), false);
    assert.equal(bodyOf(test.take(), 1).length, 65535);
    test.feed(windowUpdate(0, 32768));
    const shared = test.take();
    assert.equal(bodyOf(shared, 1).length, 16384);
    assert.equal(bodyOf(shared, 3).length, 16384);
    test.feed(windowUpdate(0, 10 ** 6));
    const rest = test.take();
    assert.equal(bodyOf(rest, 1).length, 100_000 - 65535 - 16384);
    assert.equal(bodyOf(rest, 3).length, 100_000 - 16384);
    assert.equal(test.session.streamCount, 0);
  });

  it('frames no content ahead of a peer that reads nothing', () => {
    const wide = initialWindow(10 ** 7);
    const { test, stream } = asked(wide);
    test.feed(windowUpdate(0, 10 ** 7));
    test.isRead = false;
    assert.equal(send(test, stream, 'x'.repeat(10 ** 6), true), false);
    assert.ok(test.session.output.length < 300_000);
    let received = 0;
    for (let frames = test.take(); frames.length > 0; frames = test.take()) received += bodyOf(frames, 1).length;
    assert.equal(received, 10 ** 6);
  });

  it('writes a slab as soon as it is full, and none while the socket holds one', () => {
    const wide = initialWindow(10 ** 7);
    const { test, stream } = asked(wide);
    test.feed(windowUpdate(0, 10 ** 7));
    test.session.flush();
    send(test, stream, 'x'.repeat(100_000), false);
    assert.ok(test.session.output.length < 40_000);
    test.isRead = false;
    send(test, stream, 'x'.repeat(100_000), false);
    assert.equal(test.session.isBlocked, true);
    assert.ok(test.session.output.length > 60_000);
    test.isRead = true;
    assert.equal(bodyOf(test.take(), 1).length, 200_000);
    assert.equal(test.session.isBlocked, false);
  });

  it('gives credit back in bulk, for content that somebody has used', () => {
    const test = TestSession.server({ streamWindowBytes: 20, connectionWindowBytes: 65535 }).feed(headers(1, POST, 0));
    test.feed(data(1, 'x'.repeat(9)));
    assert.deepEqual(typesOf(test.take()), []);
    test.feed(data(1, 'x'));
    const [update] = test.take();
    assert.deepEqual(
      [update!.type, update!.streamId, update!.payload.readUInt32BE()],
      [FrameType.WINDOW_UPDATE, 1, 10],
    );
  });

  it('an answer before the end of its request leaves the stream half-closed, and stops who goes on and on', () => {
    const test = TestSession.server().feed(headers(1, POST, 0));
    const stream = test.streams[0]!;
    test.session.respondLines(stream, 413, '', true);
    test.session.discard(stream);
    test.take();
    for (let round = 0; round < 4; round += 1) test.feed(data(1, 'x'.repeat(16384)));
    assert.deepEqual(test.take(), []);
    test.feed(data(1, 'x'));
    const [reset] = test.take();
    assert.deepEqual([reset!.type, reset!.payload.readUInt32BE()], [FrameType.RST_STREAM, 0]);
    assert.equal(test.session.streamCount, 0);
  });

  it('drains in two steps, and takes nothing that comes behind the second', () => {
    const test = TestSession.server().feed(headers(1, POST, 0));
    test.session.drain();
    test.session.drain();
    const [first, ping, ...none] = test.take();
    assert.deepEqual([first!.type, first!.payload.readUInt32BE()], [FrameType.GOAWAY, 2 ** 31 - 1]);
    assert.equal(ping!.type, FrameType.PING);
    assert.deepEqual(none, []);
    test.feed(headers(3), frame(FrameType.PING, FrameFlag.ACK, 0, ping!.payload));
    assert.equal(test.events.at(-1), 'drain read');
    test.session.finishDrain();
    test.feed(headers(5));
    assert.equal(test.streams.length, 2);
    const second = test.take().find(({ type }) => type === FrameType.GOAWAY)!;
    assert.equal(second.payload.readUInt32BE(), 3);
    for (const stream of test.streams) test.session.respondLines(stream, 200, '', true);
    test.feed(data(1, '', FrameFlag.END_STREAM));
    assert.equal(test.events.at(-1), 'idle');
    assert.equal(test.fault, null);
  });

  it('hears of no drain by a client that makes up the answer to a ping that was not sent', () => {
    const marked = TestSession.server();
    marked.session.drain();
    const ping = marked.take().find(({ type }) => type === FrameType.PING)!;
    const test = TestSession.server().feed(frame(FrameType.PING, FrameFlag.ACK, 0, ping.payload), headers(1));
    assert.deepEqual(test.events, ['1 head GET / end']);
  });

  it('a stream that is reset from here tells its user nothing, and one lost with its connection does', () => {
    const test = TestSession.server().feed(headers(1, POST, 0), headers(3, POST, 0));
    test.session.reset(test.streams[0]!, 8);
    test.session.reset(test.streams[0]!, 8);
    assert.deepEqual(typesOf(test.take()), [FrameType.RST_STREAM]);
    test.session.close(2, false, 'gone');
    assert.deepEqual(test.events.slice(2), ['3 reset 2 there gone']);
  });

  it('pings, and hears the answer', () => {
    const test = TestSession.server();
    test.session.ping();
    const [ping] = test.take();
    test.feed(frame(FrameType.PING, FrameFlag.ACK, 0, ping!.payload));
    assert.deepEqual(test.events, ['pong']);
    test.feed(frame(FrameType.PING, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8]));
    const [pong] = test.take();
    assert.deepEqual([pong!.flags, ...pong!.payload], [FrameFlag.ACK, 1, 2, 3, 4, 5, 6, 7, 8]);
  });
});

describe('a session of a client', () => {
  function client(): TestSession {
    const test = new TestSession(false).feed(SETTINGS);
    test.take();
    return test;
  }
  const OK = [[':status', '200']] as const;

  it('says its preface, then refuses pushes', () => {
    const test = new TestSession(false);
    const { next, nextLength } = test.session.output;
    const bytes = Buffer.from(next.subarray(0, nextLength));
    assert.equal(bytes.toString('latin1', 0, 24), 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    test.feed(SETTINGS, frame(FrameType.PUSH_PROMISE, FrameFlag.END_HEADERS, 1, Buffer.alloc(8)));
    assert.equal(test.fault?.reason, 'http2_push_refused');
  });

  it('hears interim heads, the final one, content and trailers', () => {
    const test = client();
    const stream = test.request('GET /x HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.equal(stream?.id, 1);
    test.feed(headers(1, [[':status', '103']], 0), headers(1, OK, 0), data(1, 'ab'), headers(1, [['x', 'y']]));
    assert.deepEqual(test.events, ['1 interim 103', '1 head 200', '1 data ab', '1 trailers x: y', 'idle']);
  });

  it('an answer that is cut, too long, too short or malformed ends in a reset, never in a clean end', () => {
    const faulty = [
      [headers(1, [...OK, ['content-length', '3']], 0), data(1, 'ab', FrameFlag.END_STREAM)],
      [headers(1, [...OK, ['content-length', '3']], 0), data(1, 'abcd')],
      [headers(1, [...OK, ['a', 'b\0']], 0)],
      [headers(1, [[':status', '101']], 0)],
      [data(1, 'x')],
      [headers(1, OK, 0), headers(1, [['x', 'y']], 0)],
    ];
    for (const frames of faulty) {
      const test = client();
      test.request('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      test.feed(...frames);
      assert.equal(test.fault, null);
      assert.match(test.events.find((event) => event.includes('reset'))!, /^1 reset 1 here/);
      assert.ok(!test.events.some((event) => event.endsWith(' end')));
    }
  });

  it('opens as many streams as the server allows, and none behind its GOAWAY', () => {
    const test = new TestSession(false).feed(
      frame(FrameType.SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 3]), word(2)])),
    );
    const head = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
    assert.deepEqual(
      [1, 2, 3].map(() => test.request(head)?.id),
      [1, 3, undefined],
    );
    test.feed(headers(1, OK));
    assert.equal(test.session.freeStreams, 1);
    test.feed(frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(1), word(0)])));
    assert.equal(test.session.freeStreams, 0);
    assert.ok(test.events.includes('3 reset 7 there goaway_behind_others'));
  });

  it('tells streams of a GOAWAY that leaves more behind than the one before, and of no other', () => {
    const test = new TestSession(false).feed(SETTINGS);
    for (let at = 0; at < 3; at++) test.request('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const goaway = (last: number): Buffer => frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(last), word(0)]));
    test.feed(goaway(2 ** 31 - 1), goaway(3), goaway(2 ** 31 - 1), goaway(1), goaway(5));
    assert.deepEqual(
      test.events.filter((event) => event.includes('reset')),
      ['5 reset 7 there goaway_behind_others', '3 reset 7 there goaway_behind_others'],
    );
    assert.equal(test.session.freeStreams, 0);
  });

  it('tells a stream apart whose connection has taken none', () => {
    const test = new TestSession(false).feed(SETTINGS);
    test.request('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    test.feed(frame(FrameType.GOAWAY, 0, 0, Buffer.concat([word(0), word(0)])));
    assert.ok(test.events.includes('1 reset 7 there goaway'));
  });
});
