// What the home page is made of, and what it is told, as a browser asks for it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BusyClusterView, HostView, OverviewView } from '../../../src/admin/index.ts';
import type { ReadPoints, SourceView } from '../../../src/admin/views/index.ts';
import type { Condition, Histogram, Hosts, LoggerLevel, Overview, Stats } from '../../../src/page/data.ts';
import { statsFixture } from '../../support/stats.ts';
import { clustersView, startAdmin } from './fixture.ts';

const NAN = Number.NaN;

const SOURCES: readonly SourceView[] = [
  {
    kind: 'stream',
    name: 'control',
    isConnected: true,
    sinceMs: 1000,
    identifier: 'plane-7',
    complaint: '',
    unaskedTypes: ['type.googleapis.com/envoy.service.runtime.v3.Runtime'],
    types: [
      {
        typeName: 'proxy.config.cluster.v3.Cluster',
        wanted: null,
        accepted: { version: '7', atMs: 2000 },
        refused: { version: '8', atMs: 3000, reasons: 'cluster bad: connect_timeout' },
        unasked: 0,
      },
    ],
  },
];

/** Points of the last seconds, one list for each series. */
type Lately = readonly (readonly number[])[];

function overviewOf(clusters: readonly BusyClusterView[], lately: Readonly<Record<string, Lately>> = {}): OverviewView {
  return {
    history: {
      tick: 1,
      firstAfter: (tick) => Math.min(tick, 1) + 1,
      times: (from) => [1000, 2000].slice(from),
      listeners: () => [['ingress', (from) => [[NAN, 12.3456].slice(from)]]],
      clusters: () =>
        Object.entries({ web: [[1, 2]], ...lately }).map(([name, series]) => [
          name,
          (from) => series.map((points) => points.slice(from)),
        ]),
    },
    process: {
      epoch: 0,
      memory: { residentBytes: () => 1000, heapBytes: () => 500 },
      descriptors: () => ({ open: 10, limit: undefined }),
      eventLoopUses: () => [
        { name: 'main', use: 0.25 },
        { name: 'worker 0', use: undefined },
      ],
      troubles: () => [
        { isGrave: false, text: 'lines of the log were not written: 3' },
        { isGrave: true, text: 'listener edge could not be opened: EADDRINUSE' },
      ],
      warnings: ['flags_path: has no effect'],
    },
    clusters: () => clusters,
    sources: () => SOURCES,
    hostTimes: (cluster, wanted) =>
      new Map([...wanted].slice(0, 1).map((host) => [host, { p50Ms: cluster.length, p99Ms: NAN }])),
  };
}

function busy(name: string, changes: Partial<ReturnType<BusyClusterView['use']>> = {}): BusyClusterView {
  const use = {
    overflows: 0,
    members: 1,
    membersHealthy: 1,
    membersDegraded: 0,
    activeRequests: 5,
    activeConnections: 3,
    ...changes,
  };
  return { name, use: () => use, breakers: () => [{ name: 'requests', used: 5, limit: 10 }] };
}

async function json<Answer>(url: string): Promise<Answer> {
  const response = await fetch(url);
  assert.equal(response.status, 200, await response.clone().text());
  assert.equal(response.headers.get('cross-origin-resource-policy'), 'same-origin');
  return (await response.json()) as Answer;
}

describe('the home page', () => {
  it('lets nothing in but its own files, and nobody frame it', async () => {
    await using server = await startAdmin();
    const { headers } = await fetch(server.url);
    const policy = headers.get('content-security-policy')!;
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.match(policy, /frame-ancestors 'none'.*require-trusted-types-for 'script'/);
    assert.equal(headers.get('x-frame-options'), 'DENY');
    assert.equal(headers.get('cache-control'), 'no-cache, max-age=0');
  });

  it('has no script and no style of its own, and only relative addresses', async () => {
    await using server = await startAdmin();
    const text = await (await fetch(server.url)).text();
    assert.doesNotMatch(text, /<style| style=|<script[^>]*>[^<]|\son\w+=/);
    const addresses = [...text.matchAll(/(?:src|href|action)=['"]([^'"]*)['"]/g)].map(([, address]) => address!);
    assert.ok(addresses.length > 20);
    for (const address of addresses) assert.match(address, /^(?:[a-z#]|data:image)/);
    for (const address of addresses) assert.doesNotMatch(address, /^(?:\/|https?:)/);
  });

  it('is served with its files, which a browser may keep', async () => {
    await using server = await startAdmin();
    for (const [name, type] of [
      ['page.js', 'text/javascript; charset=UTF-8'],
      ['page.css', 'text/css; charset=UTF-8'],
    ]) {
      const response = await fetch(`${server.url}/page/${name}`);
      assert.equal(response.headers.get('content-type'), type);
      assert.match(response.headers.get('cache-control')!, /immutable/);
    }
    const listed = await (await fetch(`${server.url}/help`)).text();
    assert.doesNotMatch(listed, /page\//);
  });

  it('has no forms for changes on a read-only interface', async () => {
    await using server = await startAdmin({ isReadOnly: true });
    const text = await (await fetch(server.url)).text();
    assert.doesNotMatch(text, /method='post'/);
    assert.match(text, /quitquitquit<.*not with --admin-read-only/);
    assert.match(text, /id='stats'/);
  });

  it('begins with the stats where they are asked for as HTML', async () => {
    await using server = await startAdmin();
    const text = await (await fetch(`${server.url}/stats?format=html&filter=a'%3Cb`)).text();
    assert.match(text, /<body data-view='stats' data-filter='\/a&#39;&lt;b\/'>/);
    assert.equal(
      (await fetch(`${server.url}/stats?format=active-html`)).headers.get('content-type'),
      'text/html; charset=UTF-8',
    );
  });

  it('is a message in builds without it, and so are the stats as HTML', async () => {
    await using server = await startAdmin({ pageFiles: null });
    for (const path of ['', 'stats?format=html']) {
      const response = await fetch(`${server.url}/${path}`);
      assert.equal(response.headers.get('content-type'), 'text/plain; charset=UTF-8');
      assert.equal(await response.text(), 'HTML output was disabled by building with --define admin_html=disabled');
    }
    for (const path of ['page/overview', 'page/stats', 'page/page.js']) {
      assert.equal((await fetch(`${server.url}/${path}`)).status, 404);
    }
  });
});

describe('the page is told', () => {
  it('of the process, its listeners and clusters, and what it does not know yet', async () => {
    const clusters = [busy('web', { overflows: 3 }), busy('api', { overflows: 1 })];
    await using server = await startAdmin({ overview: overviewOf(clusters) });
    const all = await json<Overview>(`${server.url}/page/overview?since=-1`);
    assert.deepEqual([all.tick, all.times], [1, [1000, 2000]]);
    assert.deepEqual(
      all.listeners.map(({ name, points }) => [name, points]),
      [
        ['ingress', [[null, 12.346]]],
        ['local', []],
      ],
    );
    assert.deepEqual(
      all.clusters.map(({ name, points }) => [name, points]),
      [
        ['api', []],
        ['web', [[1, 2]]],
      ],
    );
    assert.deepEqual(all.head.warnings, [
      { isGrave: true, text: 'listener edge could not be opened: EADDRINUSE' },
      { isGrave: false, text: 'lines of the log were not written: 3' },
      { isGrave: false, text: 'circuit breakers were full: web (3 times), api (once)' },
      { isGrave: false, text: 'flags_path: has no effect' },
    ]);
    assert.deepEqual(
      all.listeners.map(({ accepting }) => accepting),
      ['yes', 'stopped'],
    );
    assert.deepEqual(all.head.waitsFor, [
      'server: cluster manager, Listener-init-target main',
      'listener main: Listener-init-target main',
      'cluster web: first resolution of web.example',
    ]);
    assert.deepEqual(all.clusters[0]?.breakers, [{ name: 'requests', used: 5, limit: 10 }]);
    assert.deepEqual(all.head.threads[1], { name: 'worker 0', use: null });
    const next = await json<Overview>(`${server.url}/page/overview?since=0&clusters=we`);
    assert.deepEqual([next.times, next.clusterCount, next.clusters[0]?.points], [[2000], 1, [[2]]]);
    assert.equal((await fetch(`${server.url}/page/overview?since=x`)).status, 400);
  });

  it('of where resources come from, and what has come of each type', async () => {
    await using server = await startAdmin({ overview: overviewOf([]) });
    const { sources, sourceCount } = await json<Overview>(`${server.url}/page/overview`);
    assert.equal(sourceCount, 1);
    const [{ unaskedTypes: _none, types, ...source }] = SOURCES as [SourceView];
    const [{ typeName: _name, ...type }] = types as [SourceView['types'][0]];
    const complaint = 'has sent what nobody has asked for: type.googleapis.com/envoy.service.runtime.v3.Runtime';
    assert.deepEqual(sources, [{ ...source, complaint, types: [{ name: 'Cluster', ...type }] }]);
  });

  /** Rates of answers, 5xx, connections and failed ones. */
  const rates = (answers: number, errors: number, opened = 0, unreached = 0): Lately =>
    [answers, errors, 0, 0, NAN, opened, unreached].map((rate) => [NAN, rate]);
  const quiet = { activeRequests: 0, activeConnections: 0 };
  const conditions: [condition: Condition, reason: string, use: Parameters<typeof busy>[1], lately?: Lately][] = [
    ['down', 'no healthy host of 3', { members: 3, membersHealthy: 0 }, rates(9, 0)],
    ['down', 'all answers are 5xx', {}, rates(9, 9)],
    ['down', 'it has no host', { members: 0, membersHealthy: 0 }, rates(0.5, 0.5, 0, 0.5)],
    ['down', 'it has no host', { members: 0, membersHealthy: 0 }, rates(0, 0, 0, 0.5)],
    ['down', 'no connection can be opened', {}, rates(0, 0, 2, 2)],
    ['failing', '1.0 % of answers are 5xx', {}, rates(100, 1)],
    ['well', '', {}, rates(101, 1)],
    ['impaired', '1 unhealthy and 1 degraded of 4 hosts', { members: 4, membersHealthy: 2, membersDegraded: 1 }],
    ['impaired', '2 degraded of 2 hosts', { members: 2, membersHealthy: 0, membersDegraded: 2 }],
    ['impaired', 'some connections cannot be opened', {}, rates(0, 0, 3, 2)],
    ['impaired', 'some connections cannot be opened', {}, rates(5, 0, 0, 2)],
    ['well', '', { activeRequests: 1, activeConnections: 0 }],
    ['well', '', { activeRequests: 0, activeConnections: 1 }],
    ['well', '', quiet, rates(1, 0)],
    ['well', '', quiet, rates(0, 0, 1)],
    ['idle', '', quiet, rates(0, 0)],
    ['idle', '', { ...quiet, members: 0, membersHealthy: 0 }],
  ];
  for (const [condition, reason, use, lately] of conditions) {
    it(`that a cluster is ${condition} for what it has and what became of requests: ${JSON.stringify([use, lately])}`, async () => {
      const overview = overviewOf([busy('shop', use)], lately === undefined ? {} : { shop: lately });
      await using server = await startAdmin({ overview });
      const { clusters, conditions: counts } = await json<Overview>(`${server.url}/page/overview`);
      assert.deepEqual([clusters[0]!.condition, clusters[0]!.reason], [condition, reason]);
      assert.deepEqual(counts, { down: 0, failing: 0, impaired: 0, well: 0, idle: 0, [condition]: 1 });
    });
  }

  it('of clusters that do badly before all else, by the worst', async () => {
    const ill = Array.from({ length: 7 }, (_, at) => busy(`d${at}`, { membersHealthy: 0 }));
    const overview = overviewOf([busy('lame', { members: 3, membersHealthy: 2 }), busy('shop'), ...ill], {
      shop: rates(10, 1),
    });
    await using server = await startAdmin({ overview });
    const { head } = await json<Overview>(`${server.url}/page/overview?clusters=nothing`);
    const named = [0, 1, 2, 3, 4].map((at) => `d${at} (no healthy host of 1)`).join(', ');
    assert.deepEqual(head.warnings.slice(0, 4), [
      { isGrave: true, text: `7 clusters down: ${named} and 2 more` },
      { isGrave: true, text: 'cluster failing: shop (10.0 % of answers are 5xx)' },
      { isGrave: true, text: 'listener edge could not be opened: EADDRINUSE' },
      { isGrave: false, text: 'cluster impaired: lame (1 unhealthy of 3 hosts)' },
    ]);
  });

  it('of all loggers with their levels', async () => {
    await using server = await startAdmin();
    const loggers = await json<LoggerLevel[]>(`${server.url}/page/loggers`);
    assert.deepEqual(
      loggers.find(({ name }) => name === 'upstream'),
      { name: 'upstream', level: 'debug' },
    );
    assert.equal(loggers.length, server.world.loggers.list().length);
  });

  it('of those among very many clusters that have something to tell', async () => {
    const clusters = Array.from({ length: 500 }, (_, at) => busy(`c${at}`, at === 400 ? { membersHealthy: 0 } : {}));
    await using server = await startAdmin({ overview: overviewOf([...clusters, busy('web')]) });
    const { clusters: shown, clusterCount } = await json<Overview>(`${server.url}/page/overview`);
    assert.deepEqual([shown.length, clusterCount], [200, 501]);
    assert.equal(shown.find(({ name }) => name === 'c400')?.condition, 'down');
    const names = shown.map(({ name }) => name);
    assert.ok(names.includes('c400') && names.includes('web'));
    assert.deepEqual(names, names.toSorted());
  });

  it('without holding up the main thread: what takes time is done a few milliseconds at a time', async (t) => {
    // Time passes by the work alone, as the code that does it has never run.
    let nowMs = 0;
    const taking = <Result>(ms: number, result: Result): Result => {
      nowMs += ms;
      return result;
    };
    const clusters = Array.from({ length: 400 }, (_, at) => {
      const cluster = busy(`c${at}`);
      return { ...cluster, use: () => taking(0.08, cluster.use()) };
    });
    const lately: Record<string, Lately> = Object.fromEntries(clusters.map(({ name }) => [name, [[1, 2]]]));
    const { history, process, ...rest } = overviewOf(clusters, lately);
    const slow = ([name, read]: readonly [string, ReadPoints]) =>
      [name, (from: number, to: number) => taking(1, read(from, to))] as const;
    const overview: OverviewView = {
      ...rest,
      history: { ...history, clusters: () => [...history.clusters()].map(slow), listeners: () => [] },
      process: {
        ...process,
        descriptors: () => taking(4, process.descriptors()),
        troubles: () => taking(4, process.troubles()),
      },
    };
    await using server = await startAdmin({ overview });
    t.mock.method(performance, 'now', () => nowMs);
    let [turnBeganMs, longestMs, isOver] = [0, 0, false];
    const look = (): void => {
      longestMs = Math.max(longestMs, nowMs - turnBeganMs);
      turnBeganMs = nowMs;
      if (!isOver) setImmediate(look);
    };
    setImmediate(look);
    await json<Overview>(`${server.url}/page/overview?since=-1`);
    isOver = true;
    // All clusters are judged by two points, and 200 of them have rows.
    assert.equal(Math.round(nowMs), 400 * 1.08 + 200 + 8);
    // A slice, and the longest step behind it.
    assert.ok(longestMs <= 6 + 4, `${longestMs} ms at a time`);
  });

  it('of the hosts of a cluster, and why they are as they are', async () => {
    await using server = await startAdmin({ overview: overviewOf([]) });
    const { hosts, hostCount } = await json<Hosts>(`${server.url}/page/hosts?cluster=web`);
    assert.equal(hostCount, 2);
    assert.deepEqual(
      hosts.map(({ p50Ms, p99Ms }) => [p50Ms, p99Ms]),
      [
        [3, null],
        [null, null],
      ],
    );
    const [ill, well] = hosts;
    assert.deepEqual(
      [ill!.address, ill!.health, ill!.reason, ill!.sinceMs, ill!.zone, ill!.ejections],
      ['[2001:db8::1]:443', 'unhealthy', 'tcp check failed: answered a::b\n', 0, 'eu/eu-1/rack-7', 3],
    );
    assert.deepEqual([well!.health, well!.reason, well!.sinceMs, well!.requests], ['healthy', '', null, 12]);
    assert.equal((await fetch(`${server.url}/page/hosts?cluster=nothing`)).status, 404);
  });

  const states: [name: string, changes: Partial<HostView>, reason: string, health: string][] = [
    [
      'ejected',
      {
        healthFlags: 0x2,
        lastEjection: { kind: 'success-rate', successRate: 62.5, count: 1, beganMs: 5, endedMs: undefined },
      },
      'ejected: success-rate, success 62.5 %',
      'unhealthy',
    ],
    ['not checked yet', { healthFlags: 0x1 }, 'not checked yet', 'unhealthy'],
    ['degraded by its configuration', { healthFlags: 0x10 }, 'so configured', 'degraded'],
    ['draining', { healthFlags: 0x204 }, 'so configured, draining', 'unhealthy'],
    [
      'healthy after a check',
      { decidingCheck: { kind: 'http', endedMs: 7, hasPassed: true, detail: 'HTTP 200' } },
      'http check passed: HTTP 200',
      'healthy',
    ],
  ];
  for (const [name, changes, reason, health] of states) {
    it(`why a host is ${name}`, async () => {
      await using plain = await startAdmin();
      const [cluster] = [...plain.options.clusters.clusters()].filter((each) => each.name === 'web');
      const [host] = [...cluster!.hosts()];
      const clusters = [{ ...cluster!, hosts: () => [{ ...host!, ...changes }] }];
      await using server = await startAdmin({ clusters: clustersView(clusters) });
      const { hosts } = await json<Hosts>(`${server.url}/page/hosts?cluster=web`);
      assert.deepEqual([hosts[0]!.reason, hosts[0]!.health], [reason, health]);
    });
  }

  it('of all stats, and of their names only once', async () => {
    await using server = await startAdmin();
    const first = await json<Stats>(`${server.url}/page/stats`);
    const at = first.names!.indexOf('cluster.web.upstream_rq_200');
    assert.deepEqual([first.kinds![at], first.values[at], first.isCut], ['c', 12, false]);
    assert.deepEqual([first.kinds!.length, first.values.length], [first.names!.length, first.names!.length]);
    assert.deepEqual(new Set(first.kinds), new Set('cght'));
    const next = await json<Stats>(`${server.url}/page/stats?hash=${first.hash}`);
    assert.deepEqual([next.hash, next.names, next.values.length], [first.hash, undefined, first.values.length]);
    const part = await json<Stats>(`${server.url}/page/stats?hash=${first.hash}&part=${encodeURIComponent('a.b.')}`);
    assert.deepEqual(part.names, ['cluster.a.b.upstream_rq_total']);
    assert.deepEqual((await json<Stats>(`${server.url}/page/stats?part=${encodeURIComponent('a(é[')}`)).names, []);
  });

  it('of very many stats in pieces, whose names and values stay together', async () => {
    const { store } = statsFixture();
    const counters = Array.from({ length: 4500 }, (_, at) => `of_kind_${String(at).padStart(4, '0')}`);
    const scope = store.scope('many.');
    for (const [at, name] of counters.entries()) scope.counter(name).add(at);
    await using server = await startAdmin({ stats: store });
    const all = await json<Stats>(`${server.url}/page/stats?part=many.`);
    assert.deepEqual(
      all.names,
      counters.map((name) => `many.${name}`),
    );
    assert.deepEqual(all.values, [...counters.keys()]);
    assert.equal(all.kinds, 'c'.repeat(4500));
    const next = await json<Stats>(`${server.url}/page/stats?part=many.&hash=${all.hash}`);
    assert.deepEqual([next.names, next.kinds, next.values], [undefined, undefined, all.values]);
    scope.gauge('of_kind_0000x').set(1);
    assert.equal((await json<Stats>(`${server.url}/page/stats?part=many.&hash=${all.hash}`)).names?.length, 4501);
  });

  it('of one histogram as a curve', async () => {
    await using server = await startAdmin();
    const name = 'cluster.web.upstream_rq_body_size';
    const { unit, interval, cumulative } = await json<Histogram>(`${server.url}/page/histogram?name=${name}`);
    assert.deepEqual([unit, interval.count, cumulative.count, cumulative.bins.length], ['bytes', 0, 7, 7]);
    assert.deepEqual(interval.quantiles[0], [25, null]);
    assert.equal(cumulative.quantiles.length, 8);
    assert.equal((await fetch(`${server.url}/page/histogram?name=nothing`)).status, 404);
  });
});
