// Responses that a filter holds back and lets go on bit by bit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { CreateFilter } from '../../src/data-plane/index.ts';
import { editing, proxyWith } from '../support/filtered-proxy.ts';
import { WireUpstream } from '../support/wire.ts';

/** Lets as many bytes go on in each turn of the event loop as it is told, then all the rest. */
function releasing(sizes: () => readonly number[]): CreateFilter {
  return (callbacks) => {
    let isReleasing = false;
    const release = ([size, ...rest]: readonly number[]): void => {
      if (size === undefined) callbacks.continueEncoding();
      else setImmediate(release, callbacks.releaseResponse(size) === 0 ? [] : rest);
    };
    return {
      encodeData() {
        if (!isReleasing) setImmediate(release, sizes());
        isReleasing = true;
        return 'stop-and-pause';
      },
      encodeTrailers: () => 'stop-and-pause',
    };
  };
}

function unchunked(text: string): string {
  const end = text.indexOf('\r\n');
  const size = Number.parseInt(text.slice(0, end), 16);
  const rest = text.slice(end + 2);
  return size === 0 ? '' : rest.slice(0, size) + unchunked(rest.slice(size + 2));
}

for (const kind of ['content-length', 'chunked'] as const) {
  for (const isEdited of [false, true]) {
    test(`whatever pieces a ${kind} body goes on in, it arrives ${isEdited ? 'edited' : 'as it came'}`, async (t) => {
      const body = Buffer.from(Array.from({ length: 500 }, (_, index) => 97 + (index % 26))).toString();
      const framed = `1f4\r\n${body}\r\n0\r\nx-sum: 7\r\n\r\n`;
      const head = kind === 'chunked' ? 'transfer-encoding: chunked' : `content-length: ${body.length}`;
      const upstream = await WireUpstream.answering(
        `HTTP/1.1 200 OK\r\n${head}\r\n\r\n${kind === 'chunked' ? framed : body}`,
      );
      t.after(() => upstream.close());
      let sizes: readonly number[] = [];
      let seen = '';
      const shouting = editing(() => ({
        encodeData(data) {
          data.bytes = Buffer.from(data.bytes.toString().toUpperCase());
          return 'continue';
        },
      }));
      const reading: CreateFilter = () => ({
        encodeData({ bytes }) {
          seen += bytes.toString();
          return 'continue';
        },
      });
      const { client } = await proxyWith(t, upstream.port, [isEdited ? shouting : reading, releasing(() => sizes)]);
      const pieces = fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 12 });
      await fc.assert(
        fc.asyncProperty(pieces, async (drawn) => {
          sizes = drawn;
          seen = '';
          client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
          const wanted = isEdited ? body.toUpperCase() : body;
          if (kind === 'content-length' && !isEdited) {
            assert.equal((await client.response()).body, wanted);
          } else {
            const trailers = kind === 'chunked' ? 'x-sum: 7\r\n' : '';
            const text = await client.until(`0\r\n${trailers}\r\n`);
            assert.equal(unchunked(text.slice(text.indexOf('\r\n\r\n') + 4)), wanted);
          }
          if (!isEdited) assert.equal(seen, body);
        }),
        { numRuns: 40 },
      );
    });
  }
}
