// Weirs that take over from one another: what clients, counters and operators see of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PORTS, RestartRow } from '../support/restart-row.ts';
import { RestartTraffic } from '../support/restart-traffic.ts';

const RESTARTS = 5;
/** A parent has time until all its connections have ended by themselves, however crowded the machine is. */
const TIMES = ['--drain-time-s', '1', '--parent-shutdown-time-s', '600'];

test('clients, streams and counters notice nothing of restarts one after the other', async () => {
  await using row = await RestartRow.open(TIMES);
  const { ip: host, pipe } = row;
  await row.start(['--concurrency', '2']);
  const traffic = new RestartTraffic();
  for (const place of [{ host, port: PORTS.http }, { host, port: PORTS.single }, { path: pipe }]) {
    traffic.keepAlive(place, 4);
    traffic.fresh(place, 2);
  }
  traffic.echo({ host, port: PORTS.tcp }, 4);
  traffic.stream({ host, port: PORTS.http }, 1, 100);
  const concurrencies = [2, 4, 1, 3, 2];
  for (let restart = 0; restart < RESTARTS; restart++) {
    const weir = await row.takeOver(['--concurrency', String(concurrencies[restart % concurrencies.length])]);
    assert.equal(await weir.stat('server.hot_restart_epoch'), restart + 1);
    assert.equal(await weir.stat('server.hot_restart_generation'), restart + 2);
    await weir.untilStat('server.parent_connections', 0);
  }
  const { requests, connections, failures } = await traffic.stop();
  assert.deepEqual(failures, []);
  const weir = row.newest;
  await weir.untilStat('http.web.downstream_rq_completed', requests);
  await weir.untilStat('http.web.downstream_rq_2xx', requests);
  await weir.untilStat('cluster.http.upstream_rq_200', requests);
  const tcp = (await weir.stat('tcp.echo.downstream_cx_total'))!;
  assert.equal((await weir.stat('http.web.downstream_cx_total'))! + tcp, connections);
  assert.equal(await weir.stat('server.parent_connections'), 0);
});
