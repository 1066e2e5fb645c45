// The example of a control plane, as it stands: server and proxy, and what its first lines promise.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { it, type TestContext } from 'node:test';
import { collectOutput, startProgram } from '../../support/child-process.ts';
import { untilEqual } from '../../support/eventually.ts';
import { portOf, startExample } from '../../support/examples.ts';

const FOLDER = path.join(import.meta.dirname, '../../../examples/control-plane');

it('control-plane.yaml: what stands in the file of the control plane reaches the proxy, or is refused with a reason', async (t) => {
  const upstream = (name: string) =>
    portOf(
      t,
      createServer((_message, response) => response.end(name)),
    );
  const [fast, slow] = [await upstream('fast'), await upstream('slow')];
  const folder = mkdtempSync(path.join(tmpdir(), 'weir-control-plane-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'resources.json');
  const put = (text: string): void => {
    writeFileSync(`${file}.next`, text);
    renameSync(`${file}.next`, file);
  };
  const resources = readFileSync(path.join(FOLDER, 'resources.json'), 'utf8').replace('8080', '0');
  put(resources.replace('10011', String(fast)));
  const first = await startServer(t, file, 0);
  await using weir = await startExample('control-plane.yaml', { 18000: first.port });
  const url = `http://127.0.0.1:${(await weir.listeners()).get('web')!.port}`;
  const served = async () => (await fetch(url, { headers: { connection: 'close' } })).text();
  const until = (name: string) => untilEqual(name, served, 'who answers');
  assert.equal(await served(), 'fast');

  put(resources.replace('10011', String(slow)));
  await until('slow');
  put('[');
  await untilEqual(true, () => /resources\.json: SyntaxError/.test(first.output.stderr), 'the file is complained of');
  const wrong = '"EDS", "lb_policy": "CLUSTER_PROVIDED"';
  put(resources.replace('"EDS"', wrong).replace('10011', String(fast)));
  await until('fast');
  const refusal = /Cluster refused: cluster api: .*lb_policy/;
  await untilEqual(true, () => refusal.test(first.output.stdout), 'the control plane prints the refusal');

  await first.stop();
  assert.equal(await served(), 'fast');
  put(resources.replace('10011', String(slow)));
  const second = await startServer(t, file, first.port);
  await until('slow');
  const takenOver = () => second.output.stdout.includes('ClusterLoadAssignment taken over');
  await untilEqual(true, takenOver, 'the control plane prints what has been taken over');
});

async function startServer(t: TestContext, file: string, port: number) {
  const program = startProgram(process.execPath, [path.join(FOLDER, 'server.ts'), file, String(port)]);
  const { output, exited } = collectOutput(program);
  const stop = async (): Promise<void> => {
    program.kill();
    await exited;
  };
  t.after(stop);
  await untilEqual(true, () => output.stdout.includes('control plane at'), `a server: ${output.stderr}`);
  return { port: Number(/:(\d+)\n/.exec(output.stdout)?.[1]), output, stop };
}
