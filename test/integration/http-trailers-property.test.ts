// Whatever chunks a body comes in, whatever they bring along and wherever the reads cut them: the same body and the
// same trailers arrive, in both directions, past no filter, one that reads and one that changes everything.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { editing, type FilteredProxy, proxyWith, type ScriptedFilter } from '../support/filtered-proxy.ts';
import { decodeChunked } from '../support/reference/http1-chunked.ts';
import { WireUpstream } from '../support/wire.ts';

interface Message {
  readonly chunks: readonly { readonly data: string; readonly extension: string }[];
  readonly end: string;
  readonly trailers: readonly (readonly [name: string, value: string])[];
  /** Where the message is cut, in thousandths of its length. */
  readonly cuts: readonly number[];
}

const latin1 = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
const extension = fc.constantFrom('', ';a', ';a=b', ';a="b;\\"c\\r"', ';x;y=z').map((text) => text.replace('\\r', ' '));
const trailer = fc.tuple(
  fc.constantFrom('X-Sum', 'x-sum', 'Grpc-Status', 'etag', '0', "!#$%&'*+-.^_`|~"),
  fc.constantFrom('', '1', 'a, b', 'with  spaces', 'ümläut', ':', '0'),
);
const message: fc.Arbitrary<Message> = fc.record({
  chunks: fc.array(
    fc.record({
      data: fc.oneof(
        fc.string({ unit: latin1, minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 70_000 }).map((length) => 'x'.repeat(length)),
        fc.constantFrom('0\r\n\r\n', '\r\n', '0\r\nX-Sum: 1\r\n\r\n'),
      ),
      extension,
    }),
    { maxLength: 4 },
  ),
  end: fc.tuple(fc.constantFrom('0', '000'), extension).map(([zeros, text]) => zeros + text),
  trailers: fc.array(trailer, { maxLength: 4 }),
  cuts: fc.array(fc.integer({ min: 0, max: 1000 }), { maxLength: 6 }),
});

function encode({ chunks, end, trailers }: Message): Buffer {
  const body = chunks.map(({ data, extension }) => `${data.length.toString(16)}${extension}\r\n${data}\r\n`).join('');
  const lines = trailers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`${body}${end}\r\n${lines}\r\n`, 'latin1');
}

/** Writes the head and the message behind it, in its pieces; each has a turn of the event loop to itself. */
async function send(socket: Socket, head: string, sent: Message): Promise<void> {
  const bytes = Buffer.concat([Buffer.from(head), encode(sent)]);
  const cuts = sent.cuts.map((cut) => Math.floor((cut * bytes.length) / 1000)).sort((a, b) => a - b);
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    if (to === from) continue;
    socket.write(bytes.subarray(from, to));
    from = to;
    await new Promise(setImmediate);
  }
}

interface Received {
  readonly data: string;
  readonly trailers: readonly (readonly [name: string, value: string])[];
}

/** The first message of the text, with its end; undefined while it is not complete. */
function decode(text: string): (Received & { readonly end: number }) | undefined {
  const start = text.indexOf('\r\n\r\n') + 4;
  if (start < 4) return undefined;
  const length = /^content-length: (\d+)\r$/im.exec(text.slice(0, start))?.[1];
  if (length === undefined) {
    const body = decodeChunked(text.slice(start));
    return body && { data: body.data, trailers: body.trailers, end: start + body.length };
  }
  const end = start + Number(length);
  return text.length < end ? undefined : { data: text.slice(start, end), trailers: [], end };
}

/** Reads messages from a socket, one after the other. */
class Reader {
  #text = '';
  #wake = (): void => {};

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.#text += chunk.toString('latin1');
      this.#wake();
    });
  }

  async next(): Promise<Received> {
    for (;;) {
      const found = decode(this.#text);
      if (found !== undefined) {
        this.#text = this.#text.slice(found.end);
        return { data: found.data, trailers: found.trailers };
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

function expected({ chunks, trailers }: Message, changes: boolean): Received {
  const data = chunks.map((chunk) => chunk.data).join('');
  const names = trailers.map(([name, value]) => [name.toLowerCase(), value] as const);
  if (!changes) return { data, trailers: names };
  return { data: flip(data), trailers: names.length === 0 ? [] : [...names, ['x-flipped', 'yes']] };
}

function flip(text: string): string {
  const bytes = Buffer.from(text, 'latin1');
  flipBytes(bytes);
  return bytes.toString('latin1');
}

function flipBytes(bytes: Buffer): void {
  for (let index = 0; index < bytes.length; index += 1) bytes[index]! ^= 0x15;
}

const READING: ScriptedFilter = {
  use: 'reads',
  create: () => ({
    decodeData: () => 'continue',
    decodeTrailers: () => 'continue',
    encodeData: () => 'continue',
    encodeTrailers: () => 'continue',
  }),
};

const CHANGING = editing({
  decodeData(data) {
    flipBytes(data.bytes);
    return 'continue';
  },
  decodeTrailers(trailers) {
    trailers.append('X-Flipped', 'yes');
    return 'continue';
  },
  encodeData(data) {
    data.bytes = Buffer.from(data.bytes);
    flipBytes(data.bytes);
    return 'continue';
  },
  encodeTrailers(trailers) {
    trailers.append('X-Flipped', 'yes');
    return 'continue';
  },
});

/** One connection on each side, and what each end receives. */
async function open(t: TestContext, filters: readonly ScriptedFilter[]): Promise<[FilteredProxy, Promise<Socket>]> {
  const connected = Promise.withResolvers<Socket>();
  const upstream = await WireUpstream.start((socket) => connected.resolve(socket));
  t.after(() => upstream.close());
  return [await proxyWith(t, upstream.port, filters), connected.promise];
}

describe('a chunked message with trailers, however it is cut,', () => {
  for (const [name, filters, changes] of [
    ['passes as it is without filters', [], false],
    ['passes as it is behind a filter that reads it', [READING], false],
    ['passes as a filter changes it', [CHANGING], true],
    ['passes as it was when two filters change it', [CHANGING, READING, CHANGING], false],
  ] as const) {
    test(name, async (t) => {
      const [{ client }, connected] = await open(t, filters);
      const responses = new Reader(client.socket);
      let requests: Reader | undefined;
      await fc.assert(
        fc.asyncProperty(message, message, async (request, response) => {
          const wanted = (sent: Message): Received => {
            if (filters.length < 3) return expected(sent, changes);
            const flips =
              sent.trailers.length === 0
                ? []
                : ([
                    ['x-flipped', 'yes'],
                    ['x-flipped', 'yes'],
                  ] as const);
            const plain = expected(sent, false);
            return { data: plain.data, trailers: [...plain.trailers, ...flips] };
          };
          await send(client.socket, 'POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n', request);
          const socket = await connected;
          requests ??= new Reader(socket);
          assert.deepEqual(await requests.next(), wanted(request));
          await send(socket, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', response);
          assert.deepEqual(await responses.next(), wanted(response));
        }),
        { numRuns: 60, endOnFailure: true },
      );
    });
  }
});
