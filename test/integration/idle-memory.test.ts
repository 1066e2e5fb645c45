// What the start of the program leaves goes back to the system; how much stays is measured by bench/idle-memory.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { it } from 'node:test';
import { socketAddress } from '../support/bootstrap.ts';
import { DataPlaneFixture, directRoute, httpManager } from '../support/data-plane.ts';
import { eventually, untilEqual } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';

it('the memory that the start has taken is given back once it is over', async () => {
  const configYaml = JSON.stringify({ admin: { address: socketAddress('127.0.0.1', 0) } });
  await using weir = await startWeir({ configYaml, args: ['-l', 'debug', '--concurrency', '2'] });
  const givenBack = (): RegExpExecArray | null => /the start is over: (\d+) MB given back/.exec(weir.output.stderr);
  await untilEqual(true, () => givenBack() !== null, 'whether memory was given back');
  assert.ok(Number(givenBack()![1]) >= 5, weir.output.stderr);
  const ofWorkers = (): number =>
    weir.output.stderr.match(/the start of this worker is over: \d+ MB given back/g)?.length ?? 0;
  await untilEqual(2, ofWorkers, 'what workers have given back');
});

it('a worker with clients keeps what its start has taken, because they would have to wait', async (t) => {
  const proxy = new DataPlaneFixture();
  t.after(() => proxy.close());
  const { dataPlane } = proxy;
  const port = await proxy.listen(httpManager([directRoute('/', 200, 'here')]));
  let settled = 0;
  const settle = (): void => dataPlane.settle(() => void settled++);
  settle();
  assert.equal(settled, 1);
  const client = connect(port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await once(client, 'data');
  settle();
  assert.equal(settled, 1);
  client.destroy();
  await eventually(() => dataPlane.connectionCount === 0, 'the end of the connection');
  settle();
  assert.equal(settled, 2);
});
