// `npm start` without arguments, as a newcomer meets it: the program prints three commands, and what they ask for works.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { json, text as textOf } from 'node:stream/consumers';
import { before, describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { startProgram } from '../support/child-process.ts';
import { untilEqual } from '../support/eventually.ts';

const weir = startProgram(process.execPath, [path.join(PACKAGE_ROOT, 'src/main.ts'), '--concurrency', '2']);
const exited = once(weir, 'exit');
let log = '';
weir.stderr.on('data', (text: string) => {
  log += text;
});

/** What the program printed up to its last command, or up to its end. */
async function printed(): Promise<string> {
  let text = '';
  for await (const chunk of weir.stdout.iterator({ destroyOnReturn: false })) {
    text += chunk;
    if (/curl .*\/stats\n/.test(text)) return text;
  }
  throw new Error(`weir ended before it was live:\n${text}${log}`);
}

describe('the demo of npm start', () => {
  let http = '';
  let tcp = '';
  let admin = '';

  before(async () => {
    const text = await printed();
    [http, tcp, admin] = [...text.matchAll(/curl .*?(http:\/\/[\d.]+:\d+)/g)].map((match) => match[1]!) as [
      string,
      string,
      string,
    ];
  });

  it('sends each path to its upstream', async () => {
    for (const upstream of ['fast', 'slow', 'flaky']) {
      const response = await fetch(`${http}/${upstream}/x`);
      const body = (await response.json()) as Record<string, unknown>;
      assert.equal(response.status, 200);
      assert.deepEqual([body.upstream, body.path], [upstream, `/${upstream}/x`]);
    }
  });

  it('takes the three upstreams in turn for all other paths', async () => {
    const seen = new Set<unknown>();
    for (let request = 0; request < 12; request += 1) {
      const response = await fetch(`${http}/`);
      seen.add(((await response.json()) as Record<string, unknown>).upstream);
    }
    assert.deepEqual([...seen].sort(), ['fast', 'flaky', 'slow']);
  });

  it('carries bytes through the TCP listener', async () => {
    // A connection of its own that ends with the answer: weir lets open TCP connections go on while it shuts down.
    const request = get(`${tcp}/through-tcp`, { agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const body = (await json(response)) as Record<string, unknown>;
    assert.deepEqual([body.upstream, body.path], ['fast', '/through-tcp']);
  });

  it('answers a client that has no more to send, as `nc` says it', async () => {
    const { hostname, port } = new URL(tcp);
    const client = connect(Number(port), hostname);
    client.end('GET /from-nc HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n');
    assert.match(await textOf(client), /^HTTP\/1\.1 200 OK\r\n.*"path":"\/from-nc"/s);
  });

  it('counts what it carried, exactly and over both workers', async () => {
    // A worker may have answered before it counts that.
    for (const [name, value] of [
      ['http.demo_http.downstream_rq_total', '15'],
      ['tcp.demo_tcp.downstream_cx_total', '2'],
    ] as const) {
      const read = async (): Promise<string | undefined> => {
        const stats = await (await fetch(`${admin}/stats`)).text();
        return stats.split('\n').find((line) => line.startsWith(`${name}: `));
      };
      await untilEqual(`${name}: ${value}`, read, name);
    }
  });

  it('ends with 0 on SIGTERM', async () => {
    weir.kill('SIGTERM');
    assert.deepEqual(await exited, [0, null], log);
  });
});
