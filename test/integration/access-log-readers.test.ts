// Access logs of the real program whose readers do not read: they hold up neither requests, nor other logs, nor the end.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import { httpFilter, type JsonObject, listenerWith, socketAddress, withListeners } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { Fifo } from '../support/fifo.ts';
import { getAll } from '../support/get-all.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';

const LOGGERS = 'type.googleapis.com/envoy.extensions.access_loggers';
const WORKERS = 4;
const MAX_WAITING_BYTES = 1024 * 1024;

const folder = mkdtempSync(path.join(tmpdir(), 'weir-readers-'));
after(() => rmSync(folder, { recursive: true, force: true }));

type Destination = { readonly path: string } | 'stdout';

function accessLog(destination: Destination): JsonObject {
  const log_format = { text_format_source: { inline_string: '%REQ(:PATH)%\n' } };
  const typed_config =
    destination === 'stdout'
      ? { '@type': `${LOGGERS}.stream.v3.StdoutAccessLog`, log_format }
      : { '@type': `${LOGGERS}.file.v3.FileAccessLog`, path: destination.path, log_format };
  return { name: 'log', typed_config };
}

function listener(name: string, destination: Destination): JsonObject {
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200 } }];
  const route_config = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
  const filter = httpFilter({ access_log: [accessLog(destination)], route_config });
  return listenerWith([filter], { name, address: socketAddress('127.0.0.1', 0) });
}

function configYaml(listeners: readonly JsonObject[]): string {
  return JSON.stringify({ admin: { address: socketAddress('127.0.0.1', 0) }, ...withListeners(...listeners) });
}

async function makeFifo(t: TestContext, name: string): Promise<Fifo> {
  const fifo = await Fifo.make(path.join(folder, name));
  t.after(() => fifo.close());
  return fifo;
}

/** Requests with a path of 7,000 bytes that begins with `name`, over more connections than there are workers. */
async function ask(weir: WeirProcess, name: string, requests: number): Promise<void> {
  const { port } = (await weir.listeners()).get(name)!;
  const paths = Array.from({ length: requests }, (_, number) => `/${name}/${number}/${'x'.repeat(7_000)}`);
  await getAll(port, paths, 4 * WORKERS);
}

/** Until entries of the listener's log are dropped. */
async function floodUntilDropped(weir: WeirProcess, name: string): Promise<void> {
  const before = await weir.stat('filesystem.write_failed');
  while ((await weir.stat('filesystem.write_failed')) === before) await ask(weir, name, 200);
}

describe('an access log that nobody reads', () => {
  it('is bounded, lets other logs of four workers go on, and does not hold up the end', async (t) => {
    const [stalled, unread, stdout] = await Promise.all(
      ['stalled', 'unread', 'stdout'].map((name) => makeFifo(t, name)),
    );
    stalled!.openReader();
    stdout!.openReader();
    const file = path.join(folder, 'access.log');
    await using weir = await startWeir({
      configYaml: configYaml([
        listener('stalled', { path: stalled!.path }),
        listener('unread', { path: unread!.path }),
        listener('stdout', 'stdout'),
        listener('file', { path: file }),
      ]),
      args: ['--concurrency', String(WORKERS), '--file-flush-interval-msec', '20'],
      descriptors: { stdout: stdout!.openWriter() },
    });
    for (const name of ['stalled', 'unread', 'stdout']) await floodUntilDropped(weir, name);
    await ask(weir, 'file', 100);
    await untilEqual(100, () => readFileSync(file, 'latin1').split('\n').length - 1, 'entries in the file');
    const waiting = (await weir.stat('filesystem.write_total_buffered'))!;
    assert.ok(waiting <= 3 * WORKERS * MAX_WAITING_BYTES, `${waiting} bytes wait`);
    assert.equal((await weir.stop()).code, 0);
  });

  it('gets its entries whole and in order for each worker, when it is read again', async (t) => {
    const fifo = await makeFifo(t, 'late');
    fifo.openReader();
    await using weir = await startWeir({
      configYaml: configYaml([listener('late', { path: fifo.path })]),
      args: ['--file-flush-interval-msec', '20'],
    });
    await floodUntilDropped(weir, 'late');
    let text = '';
    const read = async (): Promise<number> => {
      text += fifo.read();
      return (await weir.stat('filesystem.write_total_buffered'))!;
    };
    await untilEqual(0, read, 'bytes that wait');
    text += fifo.read();
    const lines = text.split('\n');
    assert.equal(lines.pop(), '');
    assert.equal(lines.length, await weir.stat('filesystem.write_buffered'));
    for (const line of lines) assert.match(line, /^\/late\/\d+\/x{7000}$/);
  });
});
