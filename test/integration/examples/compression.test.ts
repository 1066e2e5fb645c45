// The example of a site whose answers travel compressed, and whose uploads may.

import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import { it } from 'node:test';
import { brotliDecompressSync, constants, gzipSync } from 'node:zlib';
import { portOf, startExample } from '../../support/examples.ts';
import { decoded, readAnswer } from '../../support/recoded-bodies.ts';
import { WireClient } from '../../support/wire.ts';

const PAGE = '<p>one of many lines that look alike</p>\n'.repeat(100);

it('answers travel by brotli or gzip, files as they are, events one by one, and uploads arrive as they were', async (t) => {
  let asked: string | undefined;
  let uploaded = '';
  let events: ServerResponse | null = null;
  const port = await portOf(
    t,
    createServer((request, response) => {
      asked = request.headers['accept-encoding'];
      uploaded = '';
      request.on('data', (piece: Buffer) => {
        uploaded += piece.toString();
      });
      request.on('end', () => {
        if (request.url === '/events') {
          events = response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write('data: 1\n\n');
          return;
        }
        const length = String(PAGE.length);
        response.writeHead(200, { 'content-type': 'text/html', 'content-length': length, etag: '"v1"' }).end(PAGE);
      });
    }),
  );
  await using weir = await startExample('compression.yaml', { 9090: port });
  const client = new WireClient((await weir.listeners()).get('web')!.port);
  t.after(() => client.close());
  const get = (path: string, accepted: string): Promise<Awaited<ReturnType<typeof readAnswer>>> => {
    client.write(`GET ${path} HTTP/1.1\r\nhost: a\r\naccept-encoding: ${accepted}\r\n\r\n`);
    return readAnswer(client);
  };
  for (const [accepted, encoding] of [
    ['gzip, deflate, br', 'br'],
    ['gzip, deflate', 'gzip'],
    ['deflate', undefined],
  ] as const) {
    const answer = await get('/', accepted);
    assert.deepEqual([answer.headers['content-encoding'], decoded(answer)], [encoding, PAGE]);
    assert.equal(answer.headers.etag, encoding === undefined ? '"v1"' : 'W/"v1"');
    assert.equal(asked, undefined);
  }
  assert.equal((await get('/files/page.html', 'br, gzip')).headers['content-length'], String(PAGE.length));
  const upload = gzipSync(PAGE);
  client.write(
    `POST /reports HTTP/1.1\r\nhost: a\r\ncontent-encoding: gzip\r\ncontent-length: ${upload.length}\r\n\r\n`,
  );
  client.write(upload);
  assert.equal((await readAnswer(client)).status, 200);
  assert.equal(uploaded, PAGE);
  await weir.untilStat('http.web.decompressor.uploads.gzip.request.decompressed', 1);
  client.write('GET /events HTTP/1.1\r\nhost: a\r\naccept-encoding: br\r\n\r\n');
  await client.until('\r\n\r\n');
  const pieces: Buffer[] = [];
  const nextEvent = async (): Promise<string> => {
    pieces.push(await client.bytes(Number.parseInt(await client.until('\r\n'), 16)));
    await client.bytes(2);
    return brotliDecompressSync(Buffer.concat(pieces), { finishFlush: constants.BROTLI_OPERATION_FLUSH }).toString();
  };
  assert.equal(await nextEvent(), 'data: 1\n\n');
  events!.write('data: 2\n\n');
  assert.equal(await nextEvent(), 'data: 1\n\ndata: 2\n\n');
  events!.end();
});
