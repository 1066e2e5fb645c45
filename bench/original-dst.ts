// What hosts on demand cost: a request to one that is known, in its worker; and each that is made, in main, in the worker and
// as messages between them, beside some thousands that are there. CPU time; medians of some rounds.
// node bench/original-dst.ts

import { setImmediate } from 'node:timers/promises';
import { serialize } from 'node:v8';
import type { IpAddress } from '../src/base/address.ts';
import { RuntimeValues } from '../src/base/runtime.ts';
import { ClusterManager } from '../src/control-plane/cluster-manager/cluster-manager.ts';
import { DnsResolvers } from '../src/control-plane/dns/resolvers.ts';
import type { RouteRequest } from '../src/data-plane/route/route-request.ts';
import { ClusterMap } from '../src/data-plane/upstream/cluster-map.ts';
import { Loggers } from '../src/log/index.ts';
import { type HostsUpdate, packClusters } from '../src/snapshot/index.ts';
import { clusterSettings } from '../test/support/bootstrap.ts';
import { NO_FAULTS } from '../test/support/faults.ts';
import { lbTables } from '../test/support/lb.ts';
import { NO_DISCOVERY } from '../test/support/subscriptions.ts';
import { UpstreamWorkers } from '../test/support/upstream-workers.ts';

const THERE = 2000;
const NEW = 500;
/** That come to main in one turn. */
const BURST = 50;
const CHOICES = 200_000;
const ROUNDS = 3;

function addressOf(index: number): IpAddress {
  return { kind: 'ip', ip: `10.1.${index >> 8}.${index & 255}`, port: 80 };
}

function cpuMs(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1]!;
}

/** A request with one field. */
function requestTo(text: string): RouteRequest {
  const head = { findByName: () => 0, indexOf: () => 0, valueAt: () => text };
  return { head } as unknown as RouteRequest;
}

async function round(): Promise<Record<string, number>> {
  const workers = new UpstreamWorkers(1, () => {});
  const { owner, store } = workers.stats;
  const updates: { readonly update: HostsUpdate; readonly applied: () => void }[] = [];
  const manager = new ClusterManager({
    ...NO_DISCOVERY,
    faults: NO_FAULTS,
    stats: store,
    memory: owner,
    tables: lbTables(owner),
    clock: workers.clock,
    random: { u32: () => 0 },
    loggers: new Loggers({ levels: { default: 'off' }, threadId: 0, sink: { write() {} } }),
    workers: {
      publishCluster() {},
      removeCluster() {},
      refuseHost: () => {},
      secureCluster() {},
      publishHosts: (update, applied) => updates.push({ update, applied }),
    },
    resolvers: new DnsResolvers(workers.clock, NO_FAULTS),
    runtime: new RuntimeValues(),
    localCluster: '',
    locality: { region: '', zone: '', subZone: '' },
    outlierEventLogPath: '',
    headerPrefix: 'x-proxy',
  });
  const settings = clusterSettings({
    name: 'web',
    type: 'ORIGINAL_DST',
    lb_policy: 'CLUSTER_PROVIDED',
    original_dst_lb_config: { use_http_header: true },
  });
  manager.addStatic(settings);
  await manager.start();
  const map = new ClusterMap(workers.contexts[0]!);
  map.update(packClusters(manager.snapshots()), [], () => {});
  const cluster = map.get('web')!;
  let [mainMs, workerMs, messages, bytes] = [0, 0, 0, 0];
  for (let made = 0; made < THERE + NEW; ) {
    const before = process.cpuUsage();
    for (let i = 0; i < BURST; i += 1, made += 1) manager.hostWanted('web', addressOf(made));
    await setImmediate();
    if (made > THERE) mainMs += cpuMs(before);
    for (const { update, applied } of updates.splice(0)) {
      const start = process.cpuUsage();
      map.updateHosts(update, applied);
      if (made <= THERE) continue;
      workerMs += cpuMs(start);
      messages += 1;
      bytes += serialize(update).byteLength;
    }
  }
  const destinations = cluster.destinations!;
  let found = 0;
  const user = {
    onHost(): void {
      found += 1;
    },
    onNoHost(): void {},
  };
  const timed = (contextAt: (index: number) => Parameters<typeof destinations.choose>[0]): number => {
    const start = process.cpuUsage();
    for (let i = 0; i < CHOICES; i += 1) destinations.choose(contextAt(i % THERE), cluster.breaker, user);
    return (cpuMs(start) * 1_000_000) / CHOICES;
  };
  const requests = Array.from({ length: THERE }, (_, index) => requestTo(`${addressOf(index).ip}:80`));
  const meant = Array.from({ length: THERE }, (_, index) => ({
    originalDestination: addressOf(index),
    requestedServerName: '',
  }));
  const byHeader = timed((index) => destinations.contextOf(requests[index]!, null));
  const byConnection = timed((index) => destinations.contextOf(null, meant[index]!));
  if (found !== 2 * CHOICES) throw new Error(`found ${found}`);
  manager.stop();
  return {
    'known host by header, ns': byHeader,
    'known host by connection, ns': byConnection,
    'new host, main, us': (mainMs * 1000) / NEW,
    'new host, worker, us': (workerMs * 1000) / NEW,
    'new host, messages': messages / NEW,
    'new host, bytes': bytes / NEW,
  };
}

const rounds: Record<string, number>[] = [];
for (let i = 0; i < ROUNDS; i += 1) rounds.push(await round());
console.log(`${NEW} new hosts beside ${THERE}, ${BURST} at a time; medians of ${ROUNDS} rounds`);
console.table(
  Object.keys(rounds[0]!).map((name) => ({
    name,
    value: Number(median(rounds.map((each) => each[name]!)).toFixed(3)),
  })),
);
