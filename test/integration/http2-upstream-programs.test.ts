// HTTP/2 upstreams of other makes behind clients of HTTP/1: nginx, and nghttpd of nghttp2 (Debian: the packages `nginx` and
// `nghttp2-server`). Where one is not installed its tests are skipped.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { runProgram, startProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';
import { type Http2Proxy, http2Proxy, readAll } from '../support/http2-upstream.ts';
import { ReservedPort } from '../support/reserved-port.ts';

const FILE = randomBytes(3_000_000);

interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

async function exchange(port: number, options: http.RequestOptions = {}, body?: Buffer): Promise<Answer> {
  const request = http.request({ port, host: '127.0.0.1', agent: false, ...options });
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const received = await readAll(response);
  return { status: response.statusCode!, headers: response.headers, body: received };
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

async function answersAt(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  const isThere = await promise;
  socket.destroy();
  return isThere;
}

/** The program with a proxy in front of it, which knows HTTP/2 by prior knowledge. Null, and skipped, where it is not installed. */
async function behindProxy(
  t: TestContext,
  program: string,
  argumentsFor: (port: number, folder: string) => readonly string[],
): Promise<Http2Proxy | null> {
  const { code } = await runProgram('sh', ['-c', `command -v ${program}`]);
  if (code !== 0) {
    t.skip(`${program} is not installed`);
    return null;
  }
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-upstream-'));
  const reserved = await ReservedPort.take();
  const { port } = reserved;
  writeFileSync(path.join(folder, 'file'), FILE);
  const running = startProgram(program, argumentsFor(port, folder), { cwd: folder });
  running.stdout.resume();
  running.stderr.resume();
  const exited = once(running, 'exit');
  t.after(async () => {
    running.kill('SIGKILL');
    await exited;
    await reserved[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
  await untilEqual(true, () => answersAt(port), `${program} at its port`);
  return await http2Proxy(t, port);
}

function nghttpd(...options: readonly string[]) {
  return (port: number, folder: string) => ['-a', '127.0.0.1', '--no-tls', '-d', folder, ...options, String(port)];
}

describe('nghttpd as the upstream', () => {
  test('gives a whole file in padded frames, and says what it has not', async (t) => {
    const opened = await behindProxy(t, 'nghttpd', nghttpd('-b', '255'));
    if (opened === null) return;
    const whole = await exchange(opened.port, { path: '/file' });
    assert.deepEqual([whole.status, digest(whole.body)], [200, digest(FILE)]);
    const head = await exchange(opened.port, { path: '/file', method: 'HEAD' });
    assert.deepEqual([head.status, head.headers['content-length']], [200, String(FILE.length)]);
    assert.equal((await exchange(opened.port, { path: '/nothing' })).status, 404);
    assert.equal(opened.proxy.clusterStat('web', 'upstream_cx_total'), 1);
    assert.equal(opened.proxy.clusterStat('web', 'upstream_cx_protocol_error'), 0);
  });

  test('gets a whole body through small windows and with a small table, and sends it back', async (t) => {
    const small = ['-w', '10', '-W', '12', '-c', '64', '--encoder-header-table-size', '64'];
    const opened = await behindProxy(t, 'nghttpd', nghttpd('--echo-upload', ...small));
    if (opened === null) return;
    for (let round = 0; round < 3; round++) {
      const answer = await exchange(opened.port, { path: '/', method: 'POST' }, FILE);
      assert.deepEqual([answer.status, digest(answer.body)], [200, digest(FILE)]);
    }
    assert.equal(opened.proxy.clusterStat('web', 'upstream_cx_total'), 1);
  });

  test('gets no more streams at a time than it takes', async (t) => {
    const opened = await behindProxy(t, 'nghttpd', nghttpd('-m', '2'));
    if (opened === null) return;
    assert.equal((await exchange(opened.port, { path: '/nothing' })).status, 404);
    const all = await Promise.all(Array.from({ length: 30 }, () => exchange(opened.port, { path: '/file' })));
    assert.deepEqual([...new Set(all.map(({ status, body }) => `${status} ${body.length}`))], [`200 ${FILE.length}`]);
    assert.equal(opened.proxy.clusterStat('web', 'upstream_rq_retry'), 0);
  });
});

describe('nginx as the upstream', () => {
  const ended = 10;

  function nginx(port: number, folder: string): string[] {
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    const text = `
      daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
      events { worker_connections 1000; }
      http {
        access_log off;
        ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
        server {
          listen 127.0.0.1:${port} http2;
          root ${folder};
          keepalive_requests ${ended};
          location = /small { return 200 small; }
        }
      }`;
    writeFileSync(path.join(folder, 'conf'), text);
    return ['-p', folder, '-c', path.join(folder, 'conf'), '-e', path.join(folder, 'error.log')];
  }

  test('gives a whole file, and says what it has not', async (t) => {
    const opened = await behindProxy(t, 'nginx', nginx);
    if (opened === null) return;
    const whole = await exchange(opened.port, { path: '/file' });
    assert.deepEqual([whole.status, digest(whole.body)], [200, digest(FILE)]);
    assert.equal((await exchange(opened.port, { path: '/nothing' })).status, 404);
  });

  test('that ends each connection after a few requests loses none of many at once', async (t) => {
    const requests = 600;
    const opened = await behindProxy(t, 'nginx', nginx);
    if (opened === null) return;
    const all = await Promise.all(Array.from({ length: requests }, () => exchange(opened.port, { path: '/small' })));
    assert.deepEqual([...new Set(all.map(({ status, body }) => `${status} ${body}`))], ['200 small']);
    assert.ok(opened.proxy.clusterStat('web', 'upstream_cx_total') >= requests / ended);
    assert.equal(opened.proxy.clusterStat('web', 'upstream_rq_active'), 0);
  });
});
