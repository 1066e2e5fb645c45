// The admin interface over very many stats in a thread of its own, as the program has it on main; prom-client stands beside it
// with the same series. Tells its ports, then answers each message with the time that its processor has taken so far.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { AdminServer, type AdminServerOptions } from '../../src/admin/index.ts';
import { SYSTEM_CLOCK } from '../../src/base/clock.ts';
import { Loggers } from '../../src/log/index.ts';
import { RecentLookups } from '../../src/stats/index.ts';
import { NO_FAULTS } from '../../test/support/faults.ts';
import { manyStats, promClient } from './many-stats.ts';

const { clusters, hasHistograms, hasPeer } = workerData as Record<'clusters', number> &
  Record<'hasHistograms' | 'hasPeer', boolean>;
const { store } = await manyStats(clusters, hasHistograms);
const loggers = new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } });
// What an answer of statistics does not look at is left out.
const options = {
  clock: SYSTEM_CLOCK,
  faults: NO_FAULTS,
  address: { kind: 'ip', ip: '127.0.0.1', port: 0 },
  loggers,
  lookups: new RecentLookups(),
  server: { beforeStatsRead() {}, filtersByRe2: () => true },
  clusters: { clusters: () => [] },
  stats: store,
};
const admin = new AdminServer(options as unknown as AdminServerOptions);
const address = await admin.listen();
const registry = hasPeer ? promClient(clusters) : undefined;
const peer = createServer(async (_request, response) => {
  response.setHeader('content-type', registry!.contentType);
  response.end(await registry!.metrics());
});
await new Promise<void>((resolve) => peer.listen(0, '127.0.0.1', resolve));
parentPort!.on('message', () => {
  const { user, system } = process.threadCpuUsage();
  parentPort!.postMessage((user + system) / 1000);
});
parentPort!.postMessage({
  port: address.kind === 'ip' ? address.port : 0,
  peerPort: (peer.address() as AddressInfo).port,
});
