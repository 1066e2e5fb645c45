// What the start of the program leaves goes back to the system; how much stays is measured by bench/idle-memory.ts.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { socketAddress } from '../support/bootstrap.ts';
import { DataPlaneFixture, directRoute, httpManager } from '../support/data-plane.ts';
import { eventually, untilEqual } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';

/** As many as make it worth it. */
const CONNECTIONS = 1_000;

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

it('what connections have left goes back as well, once they have gone', async () => {
  const listener = {
    name: 'raw',
    address: socketAddress('127.0.0.1', 0),
    filter_chains: [{ filters: [{ name: 'envoy.filters.network.echo' }] }],
  };
  const configYaml = JSON.stringify({
    admin: { address: socketAddress('127.0.0.1', 0) },
    static_resources: { listeners: [listener] },
  });
  await using weir = await startWeir({ configYaml, args: ['-l', 'debug', '--concurrency', '1'] });
  const isGivenBack = (): boolean => /\d MB given back to the system/.test(afterStart());
  const afterStart = (): string => weir.output.stderr.replace(/the start .*/g, '');
  await untilEqual(true, () => /the start is over/.test(weir.output.stderr), 'whether the start is over');
  const { port } = (await weir.listeners()).get('raw')!;
  // They have to be there when somebody looks, once a second, of which nothing tells.
  for (let holdMs = 2_000; !isGivenBack() && holdMs < 60_000; holdMs *= 2) {
    const clients = Array.from({ length: CONNECTIONS }, () => connect(port, '127.0.0.1'));
    await Promise.all(clients.map((client) => once(client, 'connect')));
    await delay(holdMs);
    for (const client of clients) client.destroy();
    for (let waitedMs = 0; !isGivenBack() && waitedMs < holdMs; waitedMs += 100) await delay(100);
  }
  assert.ok(isGivenBack(), weir.output.stderr);
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
