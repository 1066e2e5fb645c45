// What another reader of the same bytes could take for another request: the admin interface answers 400 and closes. Raw
// bytes, because no client sends these.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { startAdmin } from './fixture.ts';

const HOST = 'Host: localhost\r\n';
const CHUNKS = '0\r\n\r\n';

/** Everything that is answered to a request which leaves the connection open, up to its end by the server. */
async function answerTo(url: string, bytes: string): Promise<string> {
  const client = connect(Number(new URL(url).port), '127.0.0.1');
  let answer = '';
  client.setEncoding('latin1').on('data', (text: string) => {
    answer += text;
  });
  client.on('error', () => {});
  const closed = new Promise((resolve) => client.once('close', resolve));
  client.write(bytes, 'latin1');
  await closed;
  return answer;
}

function post(headers: string, body: string, version = '1.1'): string {
  return `POST /reset_counters HTTP/${version}\r\n${headers}\r\n${body}`;
}

describe('the admin server refuses', () => {
  const refused: { name: string; bytes: string; status?: number; says?: string }[] = [
    { name: 'two hosts', bytes: post(`${HOST}Host: b\r\n`, ''), says: 'more than one host header' },
    { name: 'the same host twice', bytes: post(`${HOST}${HOST}`, ''), says: 'more than one host header' },
    { name: 'two hosts in HTTP/1.0', bytes: post(`${HOST}hOST: b\r\n`, '', '1.0') },
    { name: 'no host', bytes: post('', ''), says: 'no host header' },
    { name: 'a host with a space', bytes: post('Host: a b\r\n', ''), says: "invalid host 'a b'" },
    { name: 'a host with a user', bytes: post('Host: root@localhost\r\n', ''), says: "invalid host 'root@localhost'" },
    { name: 'a host with a path', bytes: post('Host: localhost/x\r\n', ''), says: "invalid host 'localhost/x'" },
    { name: 'a host whose port is none', bytes: post('Host: localhost:x\r\n', ''), says: "invalid host 'localhost:x'" },
    { name: 'an open bracket', bytes: post('Host: [::1\r\n', ''), says: "invalid host '[::1'" },
    { name: 'two lengths', bytes: post(`${HOST}Content-Length: 1\r\nContent-Length: 1\r\n`, 'x') },
    { name: 'a list of lengths', bytes: post(`${HOST}Content-Length: 1, 1\r\n`, 'x') },
    {
      name: 'a length beside chunks',
      bytes: post(`${HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`, CHUNKS),
    },
    {
      name: 'chunks beside a length',
      bytes: post(`${HOST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n`, CHUNKS),
    },
    { name: 'chunks in chunks', bytes: post(`${HOST}Transfer-Encoding: chunked, chunked\r\n`, CHUNKS) },
    { name: 'chunks that are not last', bytes: post(`${HOST}Transfer-Encoding: chunked, identity\r\n`, CHUNKS) },
    {
      name: 'chunks in HTTP/1.0',
      bytes: post(`${HOST}Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n`, CHUNKS, '1.0'),
      says: 'transfer-encoding in HTTP/1.0',
    },
    {
      name: 'another coding below the chunks',
      bytes: post(`${HOST}Transfer-Encoding: gzip, chunked\r\n`, CHUNKS),
      status: 501,
      says: "transfer-encoding 'gzip, chunked' is not supported",
    },
    { name: 'a folded line', bytes: post(`${HOST}X: a\r\n b\r\n`, '') },
    { name: 'a folded host', bytes: post('Host: localhost\r\n b\r\n', '') },
    { name: 'a space before the colon', bytes: post('Host : localhost\r\n', '') },
    { name: 'a bare LF', bytes: post('Host: localhost\nX: y\r\n', '') },
    { name: 'a bare CR', bytes: post('Host: localhost\rX: y\r\n', '') },
    { name: 'a NUL', bytes: post('Host: local\0host\r\n', '') },
  ];
  for (const { name, bytes, status = 400, says } of refused) {
    it(name, async () => {
      await using server = await startAdmin();
      // A second request behind it, as a smuggler would have it.
      const answer = await answerTo(server.url, `${bytes}POST /quitquitquit HTTP/1.1\r\n${HOST}\r\n`);
      assert.ok(answer.startsWith(`HTTP/1.1 ${status} `), answer);
      if (says !== undefined) assert.ok(answer.endsWith(`\r\n\r\n${says}\n`), answer);
      assert.deepEqual([server.world.resets, server.world.quits], [0, 0]);
    });
  }

  it('any of them on every path and with every method, and counts it', async () => {
    await using server = await startAdmin();
    const answer = await answerTo(server.url, `PURGE /nowhere HTTP/1.1\r\n${HOST}${HOST}\r\n`);
    assert.ok(answer.startsWith('HTTP/1.1 400 '), answer);
    await eventually(() => server.world.traffic.length === 4, 'the connection and its request');
    assert.deepEqual(server.world.traffic.toSorted(), ['close', 'end 400', 'open', 'start']);
  });

  const accepted = ['localhost', 'LOCALHOST:9901', '127.0.0.1', '127.0.0.1:', '[::1]', '[::1]:9901', 'a.localhost', ''];
  for (const host of accepted) {
    it(`none that names '${host}'`, async () => {
      await using server = await startAdmin();
      const answer = await answerTo(server.url, `GET /ready HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      assert.ok(answer.startsWith('HTTP/1.1 200 '), answer);
    });
  }

  it('a path that cannot be decoded as any that it does not know', async () => {
    await using server = await startAdmin();
    const ask = (path: string, host: string): Promise<string> =>
      answerTo(server.url, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    for (const path of ['/%ff', '/%zz', '/stats/%']) {
      const answer = await ask(path, 'localhost');
      assert.match(
        answer,
        /^HTTP\/1\.1 404 .*\r\nx-content-type-options: nosniff\r\n.*invalid path\. admin commands are:/s,
      );
      assert.match(await ask(path, 'evil.example'), /^HTTP\/1\.1 403 /);
    }
  });

  it('no chunks alone', async () => {
    await using server = await startAdmin();
    const headers = `${HOST}Connection: close\r\nTransfer-Encoding: Chunked\r\n`;
    assert.ok((await answerTo(server.url, post(headers, CHUNKS))).startsWith('HTTP/1.1 200 '));
    assert.equal(server.world.resets, 1);
  });
});
