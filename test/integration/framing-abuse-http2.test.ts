// Requests of HTTP/2 whose fields or lengths would make something else of them in HTTP/1, through every filter that holds or rewrites
// bodies: none of them may arrive as a request, and the connection serves on, or is ended.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { FrameFlag, FrameType } from '../../src/data-plane/http/codec/http2/frames.ts';
import { BODY_FILTERS, BodyFilterProxy, HIDDEN, pathsOf } from '../support/body-filters.ts';
import { FrameClient } from '../support/http2-clients.ts';
import { data, headers } from '../support/http2-session.ts';
import type { Field } from '../support/reference/hpack.ts';

interface Shape {
  /** In place of those that the request has, or behind them. */
  readonly fields: readonly Field[];
  readonly body?: string;
  readonly trailers?: readonly Field[];
  /** Its head is a whole request, and may be on its way when more comes. */
  readonly arrivesEmpty?: boolean;
}

const LENGTH = String(HIDDEN.length);

const SHAPES: Readonly<Record<string, Shape>> = {
  'a length that is too small': { fields: [['content-length', '5']] },
  'a length that is too large': { fields: [['content-length', '1000']] },
  'a length without a body': { fields: [['content-length', LENGTH]], body: '' },
  'two lengths': {
    fields: [
      ['content-length', LENGTH],
      ['content-length', '0'],
    ],
  },
  'a length with a sign': { fields: [['content-length', `+${LENGTH}`]] },
  'a length that overflows': { fields: [['content-length', String(2n ** 64n + BigInt(HIDDEN.length))]] },
  'a length that is too small, before trailers': { fields: [['content-length', '5']], trailers: [['x-sum', '1']] },
  'a transfer coding': { fields: [['transfer-encoding', 'chunked']], body: `0\r\n\r\n${HIDDEN}` },
  'an option of the connection': { fields: [['connection', 'content-length']] },
  'a protocol to change to': { fields: [['upgrade', 'h2c']] },
  'a line end in a value': { fields: [['x-a', `b\r\ncontent-length: 0\r\n\r\n${HIDDEN}`]] },
  'a line feed in a value': { fields: [['x-a', `b\ncontent-length: 0\n\n${HIDDEN}`]] },
  'a NUL in a value': { fields: [['x-a', 'b\0']] },
  'a line end in a name': { fields: [['x-a: b\r\ncontent-length', '0']] },
  'a colon in a name': { fields: [['transfer-encoding: chunked\r\nx', 'y']] },
  'a space in a name': { fields: [['transfer-encoding ', 'chunked']] },
  'capitals in a name': { fields: [['Transfer-Encoding', 'chunked']] },
  'a request in its path': { fields: [[':path', `/seen HTTP/1.1\r\nhost: a\r\n\r\n${HIDDEN}`]] },
  'a space in its path': { fields: [[':path', '/seen HTTP/1.1']] },
  'a request in its method': { fields: [[':method', `GET /hidden HTTP/1.1\r\nhost: a\r\n\r\nPOST`]] },
  'a request in its authority': { fields: [[':authority', `a\r\n\r\n${HIDDEN}`]] },
  'a pseudo field behind others': {
    fields: [
      ['x-a', 'b'],
      [':path', '/hidden'],
    ],
  },
  'a pseudo field twice': {
    fields: [
      [':path', '/seen'],
      [':path', '/hidden'],
    ],
  },
  'lengths in trailers': {
    fields: [],
    trailers: [
      ['content-length', '0'],
      [':path', '/hidden'],
    ],
  },
  'a line end in trailers': { fields: [], trailers: [['x-sum', `1\r\n\r\n${HIDDEN}`]] },
  // The last one: it may arrive late.
  'a length of nothing': { fields: [['content-length', '0']], arrivesEmpty: true },
};

/** Pseudo fields first, where a shape does not say otherwise. */
function fieldsOf(path: string, { fields }: Shape): Field[] {
  const own: Field[] = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':authority', 'a'],
    [':path', path],
  ];
  const isReplaced = (name: string): boolean => fields.filter(([each]) => each === name).length === 1;
  const isBehind = fields.length > 1;
  const pseudo = own.filter(([name]) => isBehind || !isReplaced(name));
  const replacing = isBehind ? [] : fields.filter(([name]) => name.startsWith(':'));
  return [
    ...pseudo,
    ...replacing,
    ['content-type', 'text/plain'],
    ...fields.filter((each) => !replacing.includes(each)),
  ];
}

describe('requests of HTTP/2 that would be others in HTTP/1', () => {
  let proxy: BodyFilterProxy;

  before(async () => {
    proxy = await BodyFilterProxy.start();
  });

  after(() => proxy?.close());

  beforeEach(() => proxy.reset());

  for (const filter of Object.keys(BODY_FILTERS)) {
    it(`never arrive, with ${filter}`, async (t) => {
      const { to } = pathsOf(filter);
      for (const [name, shape] of Object.entries(SHAPES)) {
        const client = new FrameClient(t, proxy.portOf(filter));
        const body = shape.body ?? HIDDEN;
        const isShort = body === '' && shape.trailers === undefined;
        client.send(headers(1, fieldsOf(to, shape), isShort ? FrameFlag.END_STREAM : 0));
        if (!isShort) client.send(data(1, body, shape.trailers === undefined ? FrameFlag.END_STREAM : 0));
        if (shape.trailers !== undefined) client.send(headers(1, shape.trailers));
        const end = await client.find(
          ({ type, flags, streamId }) =>
            type === FrameType.GOAWAY ||
            (streamId === 1 && (type === FrameType.RST_STREAM || (flags & FrameFlag.END_STREAM) !== 0)),
        );
        assert.ok(end !== undefined || client.isEnded, name);
        const told = Buffer.concat(client.frames.filter(({ type }) => type === FrameType.DATA).map((f) => f.payload));
        assert.doesNotMatch(told.toString('latin1'), /fine/, name);
        const arrived = proxy.asked.filter(
          ({ url, body: bytes }) => !(shape.arrivesEmpty && url === to && bytes === ''),
        );
        assert.deepEqual(arrived, [], name);
        assert.equal(proxy.misread, 0, name);
        client.socket.destroy();
      }
      // Nothing of them has been on its way.
      const client = new FrameClient(t, proxy.portOf(filter));
      client.send(headers(1, fieldsOf(to, { fields: [] }), 0), data(1, '{}', FrameFlag.END_STREAM));
      await client.find(({ flags, streamId }) => streamId === 1 && (flags & FrameFlag.END_STREAM) !== 0);
      assert.doesNotMatch(JSON.stringify(proxy.asked), /hidden/);
    });
  }
});
