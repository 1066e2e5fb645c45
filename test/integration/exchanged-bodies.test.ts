// Filters that put others in place of the bytes of a body in their own time, and filters that leave a body alone once they
// have seen its head.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { CreateFilter, FilterCallbacks, HttpFilter } from '../../src/data-plane/index.ts';
import { editing, proxyWith } from '../support/filtered-proxy.ts';
import { upstreamOf } from '../support/scripted-upstream.ts';
import { WireUpstream } from '../support/wire.ts';

const GET = 'GET /a HTTP/1.1\r\nhost: a\r\n\r\n';
const MIB = 1024 * 1024;
const NO_BYTES = Buffer.alloc(0);

/** Writes each byte of a body twice, a few of them in each turn of the event loop, and waits where it is told to. */
class Doubling {
  readonly #exchange: (taken: number, bytes: Buffer, isLast: boolean) => boolean;
  readonly #step: () => number;
  #input = NO_BYTES;
  #isEnded = false;
  #isRunning = false;
  #hasRoom = true;
  sent = 0;
  waits = 0;

  constructor(exchange: Doubling['exchange'], step: () => number) {
    this.#exchange = exchange;
    this.#step = step;
  }

  get exchange() {
    return this.#exchange;
  }

  see(bytes: Buffer, isEnd: boolean): 'stop-and-pause' {
    this.#input = Buffer.concat([this.#input, bytes]);
    this.#isEnded ||= isEnd;
    this.#run();
    return 'stop-and-pause';
  }

  goOn(): void {
    this.#hasRoom = true;
    this.#run();
  }

  #run(): void {
    if (this.#isRunning || !this.#hasRoom) return;
    this.#isRunning = true;
    setImmediate(() => {
      this.#isRunning = false;
      const taken = this.#input.subarray(0, this.#step());
      this.#input = this.#input.subarray(taken.length);
      const isLast = this.#isEnded && this.#input.length === 0;
      const bytes = Buffer.alloc(taken.length * 2);
      for (let at = 0; at < bytes.length; at += 1) bytes[at] = taken[at >> 1]!;
      this.sent += bytes.length;
      this.#hasRoom = this.#exchange(taken.length, bytes, isLast);
      if (!this.#hasRoom) this.waits += 1;
      if (!isLast && (this.#input.length > 0 || this.#isEnded)) this.#run();
    });
  }
}

function doublingResponses(
  step: () => number = () => 1000,
  made: (doubling: Doubling) => void = () => {},
  holdsHead = true,
): CreateFilter {
  return (callbacks) => {
    const doubling = new Doubling((...part) => callbacks.exchangeResponse(...part), step);
    made(doubling);
    return {
      encodeHeaders: () => (holdsHead ? 'stop-and-pause' : 'continue'),
      encodeData: ({ bytes, isEnd }) => doubling.see(bytes, isEnd),
      encodeTrailers: () => doubling.see(NO_BYTES, true),
      onResponseRoom: () => doubling.goOn(),
    };
  };
}

const doubled = (text: string): string => [...text].map((letter) => letter + letter).join('');

function unchunked(text: string): string {
  const end = text.indexOf('\r\n');
  const size = Number.parseInt(text.slice(0, end), 16);
  const rest = text.slice(end + 2);
  return size === 0 ? '' : rest.slice(0, size) + unchunked(rest.slice(size + 2));
}

describe('a filter that exchanges a body in its own time', () => {
  test('has a response that it held whole announced with its new length', async (t) => {
    const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello');
    t.after(() => upstream.close());
    const { client } = await proxyWith(t, upstream.port, [editing(doublingResponses())]);
    const { head, body } = await client.write(GET).response();
    assert.equal(body, 'hheelllloo');
    assert.match(head, /content-length: 10/);
    assert.doesNotMatch(head, /transfer-encoding/);
  });

  test('has the head go on with what comes first', async (t) => {
    const upstream = await upstreamOf(t);
    const { client } = await proxyWith(t, upstream.port, [editing(doublingResponses())]);
    client.write(GET);
    await upstream.received('\r\n\r\n');
    upstream.send('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab');
    assert.match(await client.until('aabb\r\n'), /transfer-encoding: chunked/);
    upstream.send('cd');
    assert.equal(await client.until('0\r\n\r\n'), '4\r\nccdd\r\n0\r\n\r\n');
  });

  test('exchanges requests as well', async (t) => {
    const upstream = await upstreamOf(t);
    const create: CreateFilter = (callbacks) => {
      const doubling = new Doubling(
        (...part) => callbacks.exchangeRequest(...part),
        () => 2,
      );
      return {
        decodeHeaders: () => 'stop-and-pause',
        decodeData: ({ bytes, isEnd }) => doubling.see(bytes, isEnd),
        onRequestRoom: () => doubling.goOn(),
      };
    };
    const { client } = await proxyWith(t, upstream.port, [editing(create)]);
    client.write('POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello');
    const text = await upstream.received('0\r\n\r\n');
    assert.equal(unchunked(text.slice(text.indexOf('\r\n\r\n') + 4)), 'hheelllloo');
    upstream.send('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    assert.equal((await client.response()).body, 'ok');
  });

  for (const framing of ['content-length', 'chunked'] as const) {
    test(`hands on the same in whatever steps, from ${framing}, past filters before and behind it`, async (t) => {
      const body = Array.from({ length: 300 }, (_, index) => String.fromCharCode(97 + (index % 26))).join('');
      const isChunked = framing === 'chunked';
      const pieces = `64\r\n${body.slice(0, 100)}\r\nc8\r\n${body.slice(100)}\r\n0\r\nx-sum: 7\r\n\r\n`;
      const announced = isChunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`;
      const upstream = await WireUpstream.answering(
        `HTTP/1.1 200 OK\r\n${announced}\r\n\r\n${isChunked ? pieces : body}`,
      );
      t.after(() => upstream.close());
      let steps: number[] = [];
      let holdsHead = true;
      const step = (): number => steps.pop() ?? 1000;
      let seen = '';
      const reading: CreateFilter = () => ({
        encodeData({ bytes }) {
          seen += bytes.toString();
          return 'continue';
        },
      });
      const create: CreateFilter = (callbacks) => doublingResponses(step, undefined, holdsHead)(callbacks);
      const filters = [reading, editing(create), editing(create), reading];
      const { client } = await proxyWith(t, upstream.port, filters);
      const wanted = doubled(doubled(body));
      const trailer = isChunked ? 'x-sum: 7\r\n' : '';
      const drawn = fc.record({
        sizes: fc.array(fc.integer({ min: 0, max: 90 }), { maxLength: 12 }),
        holds: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(drawn, async ({ sizes, holds }) => {
          steps = [...sizes];
          holdsHead = holds;
          seen = '';
          client.write(GET);
          const head = await client.until('\r\n\r\n');
          const length = /content-length: (\d+)/.exec(head)?.[1];
          const text =
            length === undefined
              ? unchunked(await client.until(`0\r\n${trailer}\r\n`))
              : (await client.bytes(Number(length))).toString();
          assert.equal(text, wanted);
          assert.equal(seen, body + wanted);
        }),
        { numRuns: 40 },
      );
    });
  }

  test('waits for a client that does not read, and has the upstream wait long before the limit', async (t) => {
    let written = 0;
    const upstream = await WireUpstream.start((socket) => {
      const piece = Buffer.from(`10000\r\n${'x'.repeat(0x10000)}\r\n`);
      const write = (): void => {
        do written += piece.length;
        while (socket.write(piece));
      };
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
        write();
      });
      socket.on('drain', write);
    });
    t.after(() => upstream.close());
    let doubling: Doubling | null = null;
    const filter = editing(
      doublingResponses(
        () => Number.POSITIVE_INFINITY,
        (made) => {
          doubling = made;
        },
      ),
    );
    const { port, proxy } = await proxyWith(t, upstream.port, [filter], 256 * MIB);
    const socket = connect(port, '127.0.0.1');
    t.after(() => socket.destroy());
    socket.write(GET);
    const isWaiting = (): boolean => ((doubling as Doubling | null)?.waits ?? 0) > 0;
    while (!isWaiting() || proxy.clusterStat('web', 'upstream_flow_control_paused_reading_total') === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(written < 128 * MIB, `${written} bytes on their way to a client that reads none`);
    let received = 0;
    socket.on('data', (bytes) => {
      received += bytes.length;
    });
    while (received < 64 * MIB) await new Promise((resolve) => socket.once('data', resolve));
  });

  test('waits for a filter behind it that holds more than the limit', async (t) => {
    const upstream = await WireUpstream.answering(
      `HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n${'x'.repeat(200_000)}`,
    );
    t.after(() => upstream.close());
    let doubling: Doubling | null = null;
    let behind: FilterCallbacks | null = null;
    const stopping: CreateFilter = (callbacks) => {
      behind = callbacks;
      return { encodeData: () => 'stop-and-pause' };
    };
    const create = doublingResponses(
      () => 10_000,
      (made) => {
        doubling = made;
      },
    );
    const { client } = await proxyWith(t, upstream.port, [stopping, editing(create)], 65_536);
    client.write(GET);
    while ((doubling as Doubling | null)?.waits !== 1) await new Promise((resolve) => setImmediate(resolve));
    // It is told of no room while there is none.
    behind!.releaseResponse(1);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.equal((doubling! as Doubling).sent, 80_000);
    let isOver = false;
    const pumping = (async () => {
      while (!isOver) {
        await new Promise((resolve) => setImmediate(resolve));
        behind!.releaseResponse(MIB);
        if ((doubling! as Doubling).sent === 400_000) behind!.continueEncoding();
      }
    })();
    const text = await client.until('0\r\n\r\n');
    isOver = true;
    await pumping;
    assert.equal(unchunked(text.slice(text.indexOf('\r\n\r\n') + 4)).length, 400_000);
  });

  test('ends the stream alone when what it sends on breaks a filter behind it', async (t) => {
    const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello');
    t.after(() => upstream.close());
    let isBroken = true;
    const breaking: CreateFilter = () => ({
      encodeData() {
        if (isBroken) throw new Error('broken');
        return 'continue';
      },
    });
    const { client } = await proxyWith(t, upstream.port, [breaking, editing(doublingResponses())]);
    assert.equal((await client.write(GET).response()).status, 500);
    isBroken = false;
    assert.equal((await client.write(GET).response()).body, 'hheelllloo');
  });
});

describe('a filter that leaves a body alone', () => {
  const leaving = (more: Partial<HttpFilter> = {}): CreateFilter => {
    return (callbacks) => ({
      decodeHeaders() {
        callbacks.leaveRequest();
        return 'continue';
      },
      encodeHeaders() {
        callbacks.leaveResponse();
        return 'continue';
      },
      decodeData: () => assert.fail('sees a request that it has left'),
      encodeData: () => assert.fail('sees a response that it has left'),
      ...more,
    });
  };

  test('lets it keep its framing, both ways', async (t) => {
    const upstream = await upstreamOf(t);
    const { client } = await proxyWith(t, upstream.port, [editing(leaving()), editing(leaving())]);
    client.write('POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhe');
    assert.match(await upstream.received('\r\n\r\nhe'), /content-length: 5/);
    client.write('llo');
    await upstream.received('\r\n\r\nhello');
    upstream.send('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;a=b\r\nab\r\n');
    assert.ok((await client.until('ab\r\n')).endsWith('2;a=b\r\nab\r\n'));
    upstream.send('0\r\nx-sum: 7\r\n\r\n');
    assert.ok((await client.until('7\r\n\r\n')).endsWith('0\r\nx-sum: 7\r\n\r\n'));
  });

  test('leaves the length in the answer to a HEAD', async (t) => {
    const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n');
    t.after(() => upstream.close());
    const { client } = await proxyWith(t, upstream.port, [editing(leaving())]);
    assert.match(await client.write(GET.replace('GET', 'HEAD')).until('\r\n\r\n'), /content-length: 500/);
  });

  test('does not keep others from editing it, whichever comes first', async (t) => {
    const shouting = editing({
      encodeData(data) {
        data.bytes = Buffer.from(data.bytes.toString().toUpperCase());
        return 'continue';
      },
    });
    const upstream = await WireUpstream.answering(
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    );
    t.after(() => upstream.close());
    for (const filters of [
      [editing(leaving()), shouting],
      [shouting, editing(leaving())],
    ]) {
      const { client } = await proxyWith(t, upstream.port, filters);
      assert.equal((await client.write(GET).response()).body, 'HELLO');
    }
  });

  test('is asked for no more while an earlier one holds the head', async (t) => {
    const upstream = await upstreamOf(t);
    const holding: CreateFilter = (callbacks) => ({
      encodeHeaders() {
        setImmediate(() => callbacks.continueEncoding());
        return 'stop-and-pause';
      },
      encodeData: () => 'continue',
    });
    const { client } = await proxyWith(t, upstream.port, [editing(leaving()), holding]);
    client.write(GET);
    await upstream.received('\r\n\r\n');
    upstream.send('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n');
    assert.ok((await client.until('hello\r\n')).endsWith('5;x=y\r\nhello\r\n'));
    upstream.send('0\r\n\r\n');
    await client.until('0\r\n\r\n');
  });

  test('may say so only while it looks at the head', async (t) => {
    const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello');
    t.after(() => upstream.close());
    const late: CreateFilter = (callbacks) => ({
      encodeData() {
        assert.throws(() => callbacks.leaveResponse(), { code: 'WEIR_FILTER_EDIT' });
        return 'continue';
      },
    });
    const { client } = await proxyWith(t, upstream.port, [editing(late)]);
    assert.equal((await client.write(GET).response()).body, 'hello');
  });
});

test('filters know which answers are of the proxy itself, and share what they know of a stream', async (t) => {
  const upstream = await WireUpstream.answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
  t.after(() => upstream.close());
  const noted: string[] = [];
  const noting = editing((callbacks) => ({
    encodeHeaders() {
      const list = callbacks.shared('test', () => [] as boolean[]);
      list.push(callbacks.isLocalReply);
      noted.push(list.join());
      return 'continue';
    },
  }));
  const { client } = await proxyWith(t, upstream.port, [noting, noting]);
  await client.write(GET).response();
  await client.write(GET.replace('/a', '/direct')).response();
  assert.deepEqual(noted, ['false', 'false,false', 'true', 'true,true']);
});
