// What a pick costs over all layers (priority, locality, panic, subset, list, balancer), with the hashing of requests where
// balancers go by that, and what main pays to make the lists anew. CPU time, which others on the machine change least;
// medians of many rounds.
// node bench/host-lists.ts

import { RandomSequence } from '../src/base/random.ts';
import { type BalancingSettings, HostLists } from '../src/control-plane/cluster-manager/host-lists/host-lists.ts';
import type { ListedHost } from '../src/control-plane/cluster-manager/host-lists/priority-members.ts';
import { RequestHasher } from '../src/data-plane/route/hash-policy.ts';
import { RouteRequest } from '../src/data-plane/route/route-request.ts';
import { LoadBalancer } from '../src/data-plane/upstream/load-balancer/load-balancer.ts';
import { Criteria, contextOf, type PickContext } from '../src/data-plane/upstream/load-balancer/pick-context.ts';
import { compileHttp1, Http1Codec } from '../src/wasm/http1.ts';
import { compileModule } from '../src/wasm/instantiate.ts';
import { LbKernel, LbTables } from '../src/wasm/lb.ts';
import { HealthFlag } from '../src/wasm/shared-memory.ts';
import { SharedMemoryOwner } from '../src/wasm/shared-memory-owner.ts';

const HOSTS = 100;
const MANY = 10_000;
const CALLS = 100_000;
const ROUNDS = 21;
const ILL = HealthFlag.failedActiveHealthCheck;

const owner = new SharedMemoryOwner({ workerCount: 2 });
const kernel = new LbKernel(owner.shared, compileModule('lb'));
const tables = new LbTables(owner, kernel);
const record = owner.recordAllocator.allocateHost(1);

const SETTINGS: BalancingSettings = {
  lbPolicy: 'ROUND_ROBIN',
  leastRequest: { choiceCount: 2, activeRequestBias: undefined, activeRequestBiasKey: '', comparesAll: false },
  hashing: {
    minimumRingSize: 1024,
    maximumRingSize: 8_388_608,
    hashFunction: 'XX_HASH',
    maglevTableSize: 65_537,
    usesHostname: false,
    balancePercent: 0,
    policies: [],
  },
  healthyPanicThreshold: 50,
  overprovisioningFactor: 140,
  weightedPriorityHealth: false,
  subsets: null,
  failsTrafficOnPanic: false,
  weighsLocalities: false,
  zoneRouting: null,
};

function hostAt(index: number, fields: Partial<ListedHost> = {}): ListedHost {
  return {
    address: { kind: 'ip', ip: `10.0.${index >> 8}.${index & 255}`, port: 8080 },
    hostname: '',
    hashKey: '',
    subsetValues: [],
    weight: 1,
    locality: { region: '', zone: `zone-${index % 3}`, subZone: '' },
    localityWeight: 1 + (index % 3),
    priority: 0,
    healthFlags: 0,
    recordAddress: record,
    ...fields,
  };
}

function hosts(count: number, fields: (index: number) => Partial<ListedHost> = () => ({})): ListedHost[] {
  return Array.from({ length: count }, (_, index) => hostAt(index, fields(index)));
}

function balancer(settings: Partial<BalancingSettings>, members: readonly ListedHost[]): LoadBalancer {
  const all = { ...SETTINGS, ...settings };
  const balancing = new LoadBalancer({
    kernel,
    seeds: new RandomSequence(1),
    random: new RandomSequence(2),
    isHashed: all.lbPolicy === 'RING_HASH' || all.lbPolicy === 'MAGLEV',
    subsets: all.subsets,
    zoneRouting: { value: { numerator: 100, denominator: 100 } },
    loads: { ofCluster: () => HOSTS, ofHost: () => 1 },
    count: () => {},
  });
  balancing.setLists(new HostLists(tables, all, members).address);
  return balancing;
}

interface Row {
  readonly name: string;
  readonly limit: string;
  readonly calls: number;
  run(calls: number): number;
}

const rows: Row[] = [];
/** Kept so that no loop is taken for useless. */
let kept = 0;

function pick(name: string, limit: string, balancing: LoadBalancer, request: PickContext | null = null): void {
  rows.push({
    name,
    limit,
    calls: CALLS,
    run(calls) {
      let sum = 0;
      for (let n = 0; n < calls; n += 1) sum = (sum + balancing.pick(request)) | 0;
      return sum;
    },
  });
}

pick('round robin, one list', '150', balancer({}, hosts(HOSTS)));
pick('least request, one list', '150', balancer({ lbPolicy: 'LEAST_REQUEST' }, hosts(HOSTS)));
const mixed = (index: number): Partial<ListedHost> => ({
  priority: index % 2,
  weight: 1 + (index % 5),
  healthFlags: index % 7 < 4 ? ILL : 0,
});
pick(
  'three localities, weights',
  '150',
  balancer(
    { weighsLocalities: true },
    hosts(HOSTS, (n) => ({ weight: 1 + (n % 5) })),
  ),
);
pick(
  'two priorities, localities, weights, spillover',
  '150',
  balancer({ weighsLocalities: true }, hosts(HOSTS, mixed)),
);
pick(
  'two priorities in panic, least request',
  '150',
  balancer(
    { lbPolicy: 'LEAST_REQUEST' },
    hosts(HOSTS, (n) => ({ ...mixed(n), weight: 1, healthFlags: n % 5 === 0 ? 0 : ILL })),
  ),
);
const selectors = [{ keys: ['a', 'b'], fallback: 'cluster', fallbackKeys: [], isSingleHost: false }] as const;
const flags = {
  weighsLocalities: false,
  scalesLocalityWeights: false,
  panicModeAny: false,
  listAsAny: false,
  takesAlternatives: false,
  allowsRedundantKeys: false,
};
const inSubset = (n: number): Partial<ListedHost> => ({
  subsetValues: [
    { key: 'a', value: `"${n % 10}"`, elements: null },
    { key: 'b', value: `"${n % 3}"`, elements: null },
  ],
});
pick(
  'subset of two keys, then round robin',
  '400',
  balancer({ subsets: { selectors, fallback: 'none', defaultSubset: [], ...flags } }, hosts(HOSTS, inSubset)),
  contextOf(
    new Criteria([
      ['a', '"4"'],
      ['b', '"1"'],
    ]),
  ),
);

const codec = new Http1Codec(compileHttp1());
const head = Buffer.from(
  'GET /a/b?c=d HTTP/1.1\r\nhost: h.example\r\nuser-agent: bench\r\naccept: */*\r\nx-user: user-session-00c0ffee\r\n\r\n',
);
codec.parseRequest(head, 0, head.length, { maxHeadBytes: 60_000, maxFields: 100 });
const request = new RouteRequest(new RandomSequence(3));
request.read(codec.request, false, false);
const hasher = new RequestHasher([{ kind: 'header', name: 'x-user', rewrite: null, isTerminal: false }]);
const client = {
  clientAddress: '10.0.0.1',
  connectionEnds: { remote: { ip: '10.0.0.1', port: 1 }, local: { ip: '10.0.0.2', port: 2 } },
  state: () => undefined,
  setCookie() {},
};
for (const lbPolicy of ['RING_HASH', 'MAGLEV'] as const) {
  const balancing = balancer({ lbPolicy }, hosts(HOSTS));
  rows.push({
    name: `${lbPolicy} by a header, with the hashing`,
    limit: '250',
    calls: CALLS,
    run(calls) {
      let sum = 0;
      for (let n = 0; n < calls; n += 1) sum = (sum + balancing.pick(hasher.hash(kernel, request, client, null))) | 0;
      return sum;
    },
  });
}

/** One build of the lists, in nanoseconds as everything here. */
function build(name: string, limit: string, settings: Partial<BalancingSettings>): void {
  const members = hosts(MANY, (n) => ({ weight: 1 + (n % 5), healthFlags: n % 100 === 0 ? ILL : 0 }));
  rows.push({
    name,
    limit,
    calls: 1,
    run() {
      const lists = new HostLists(tables, { ...SETTINGS, ...settings }, members);
      owner.reclaimer.collect(() => lists.retire())();
      return lists.address;
    },
  });
}

build('build: 10,000 hosts, round robin by weights', '50,000,000', {});
build('build: 10,000 hosts, localities', '50,000,000', { weighsLocalities: true });
build('build: 10,000 hosts, Maglev', '50,000,000', { lbPolicy: 'MAGLEV' });

const times = rows.map(() => [] as number[]);
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [at, row] of rows.entries()) {
    const before = process.cpuUsage();
    kept += row.run(row.calls);
    const { user, system } = process.cpuUsage(before);
    times[at]!.push(((user + system) * 1000) / row.calls);
  }
}
console.log(`${HOSTS} hosts, ns of CPU time (${kept === 0 ? '' : 'medians of'} ${ROUNDS} rounds)`);
console.table(
  Object.fromEntries(
    rows.map(({ name, limit }, at) => {
      const sorted = times[at]!.toSorted((a, b) => a - b);
      const round1 = (value: number): number => Math.round(value * 10) / 10;
      return [name, { median: round1(sorted[ROUNDS >> 1]!), best: round1(sorted[0]!), 'must reach': limit }];
    }),
  ),
);
