// A real admin server over a small, fixed world: two clusters, two listeners, a handful of stats.

import { once } from 'node:events';
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { text } from 'node:stream/consumers';
import {
  AdminServer,
  type AdminServerOptions,
  type CertificatesView,
  type ClustersView,
  type ClusterView,
  type DrainOrder,
  type EventFeedView,
  type HostView,
  type ServerCommands,
  type ServerState,
  type StatsView,
  type TapView,
  type UnreadyView,
} from '../../../src/admin/index.ts';
import type { Address } from '../../../src/base/address.ts';
import { formatAddress } from '../../../src/base/address.ts';
import { SYSTEM_CLOCK } from '../../../src/base/clock.ts';
import type { Version } from '../../../src/base/version.ts';
import { commandLineOptionsJson, parseCommandLine } from '../../../src/cli/index.ts';
import { Runtime } from '../../../src/control-plane/runtime/runtime.ts';
import { Loggers, type LogRecord } from '../../../src/log/index.ts';
import type { TapTrace } from '../../../src/snapshot/index.ts';
import { RecentLookups, type StatsStore, statTable } from '../../../src/stats/index.ts';
import { NO_FAULTS } from '../../support/faults.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { statsFixture } from '../../support/stats.ts';
import { fileSources } from '../../support/subscriptions.ts';
import { CONFIG } from './config-fixture.ts';

export const VERSION: Version = {
  revision: 'c0ffee0000000000000000000000000000000000',
  release: '1.2.3-dev',
  treeStatus: 'Clean',
  buildMode: 'RELEASE',
  tlsLibrary: 'OpenSSL',
};

export interface World {
  state: ServerState;
  filtersByRe2: boolean;
  resets: number;
  quits: number;
  reopens: number;
  flushes: number;
  bytes: number;
  readonly traffic: string[];
  readonly drains: DrainOrder[];
  readonly records: LogRecord[];
  readonly loggers: Loggers;
  readonly lookups: RecentLookups;
  readonly runtime: Runtime;
}

export interface RunningAdmin extends AsyncDisposable {
  readonly admin: AdminServer;
  readonly options: AdminServerOptions;
  readonly url: string;
  readonly world: World;
}

export async function startAdmin(changes: Partial<AdminServerOptions> = {}): Promise<RunningAdmin> {
  const world = makeWorld();
  const options = { ...(await adminOptions(world)), ...changes };
  const admin = new AdminServer(options);
  const address = await admin.listen();
  return {
    admin,
    options,
    url: `http://${formatAddress(address)}`,
    world,
    [Symbol.asyncDispose]: () => admin.close(0),
  };
}

export async function call(
  url: string,
  options: RequestOptions = {},
  body = '',
): Promise<{ status: number; body: string }> {
  const sent = request(url, { agent: false, ...options });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode!, body: await text(response) };
}

function makeWorld(): World {
  const records: LogRecord[] = [];
  const sink = { write: (record: LogRecord) => records.push(record) };
  const loggers = new Loggers({ levels: { default: 'info', components: { upstream: 'debug' } }, sink, threadId: 0 });
  const lookups = new RecentLookups();
  for (const name of ['alpha', 'beta', 'alpha']) lookups.record(name);
  return {
    state: 'LIVE',
    filtersByRe2: true,
    resets: 0,
    quits: 0,
    reopens: 0,
    flushes: 0,
    bytes: 0,
    traffic: [],
    drains: [],
    records,
    loggers,
    lookups,
    runtime: someRuntime(),
  };
}

/** Two layers that say something, and one to be written. */
function someRuntime(): Runtime {
  const runtime = new Runtime({
    faults: NO_FAULTS,
    hash: () => 0n,
    stats: statsFixture().store,
    workers: { publishRuntime() {} },
    clock: new ManualClock(),
    log: new Loggers({ levels: { default: 'off' }, sink: { write() {} }, threadId: 0 }).get('runtime'),
    subscriptions: fileSources(),
  });
  void runtime.load([
    {
      name: 'base',
      kind: 'static',
      values: new Map([
        ['routing.new', '5'],
        ['upstream.use_retry', '100'],
      ]),
    },
    { name: 'override', kind: 'static', values: new Map([['routing.new', '{"numerator":1,"denominator":"MILLION"}']]) },
    { name: 'admin', kind: 'admin', values: new Map() },
  ]);
  return runtime;
}

const COUNTERS = {
  'cluster.web.upstream_rq_total': 12,
  'cluster.web.upstream_rq_200': 12,
  'cluster.a.b.upstream_rq_total': 1,
  'http.ingress.downstream_cx_total': 9_007_199_254_740_991,
} as const;
const GAUGES = { 'server.live': 1, 'http.ingress.downstream_cx_active': 2 } as const;
const TIMES = statTable({ downstream_rq_time: 'histogram:ms', downstream_rq_timeout: 'counter' });
const SIZES = statTable({ upstream_rq_body_size: 'histogram:bytes', upstream_rq_retry: 'counter' });

/** A real store: some stats have been written, some not; one histogram has an interval without samples. */
async function someStats(): Promise<StatsStore> {
  const { store } = statsFixture({ tags: { fixedTags: [{ name: 'site', value: 'a "b"\\c' }] } });
  for (const [name, value] of Object.entries(COUNTERS)) ownerOf(store, name).counter(restOf(name)).add(value);
  for (const [name, value] of Object.entries(GAUGES)) ownerOf(store, name).gauge(restOf(name)).set(value);
  store.scope('control_plane.').textReadout('identifier');
  store.scope('listener_manager.').textReadout('version').set('a "quoted" <text>');
  const times = store.scope('http.ingress.').allocate(TIMES);
  const sizes = ['web', 'api'].map((name) => store.scope(`cluster.${name}.`).allocate(SIZES));
  for (const value of [20, 30, 50, 70, 100, 200, 5000]) sizes[0]!.record('upstream_rq_body_size', value);
  await store.mergeHistograms();
  times.record('downstream_rq_time', 300);
  await store.mergeHistograms();
  return store;
}

function ownerOf(store: StatsStore, name: string): ReturnType<StatsStore['scope']> {
  return store.scope(name.slice(0, name.lastIndexOf('.') + 1));
}

function restOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}

/** Obeyed by nobody. */
export const NO_COMMANDS: ServerCommands = {
  quit() {},
  reopenLogs() {},
  resetCounters() {},
  failHealthChecks() {},
  drainListeners() {},
  startProfiler: async () => 'done',
  stopProfiler: async () => 'is-off',
  modifyRuntime: () => undefined,
};

export const ANY_PORT: Address = { kind: 'ip', ip: '127.0.0.1', port: 0 };

async function adminOptions(world: World): Promise<AdminServerOptions> {
  return {
    address: ANY_PORT,
    clock: SYSTEM_CLOCK,
    faults: NO_FAULTS,
    pageFiles: {
      script: { name: 'page.js', body: Buffer.from('/* script */') },
      style: { name: 'page.css', body: Buffer.from('/* style */') },
    },
    loggers: world.loggers,
    lookups: world.lookups,
    runtime: world.runtime,
    server: {
      state: () => world.state,
      wallMs: () => Date.UTC(2026, 0, 2),
      certificates: () => CERTIFICATES,
      uptimeCurrentEpochSeconds: () => 6,
      uptimeAllEpochsSeconds: () => 3606,
      filtersByRe2: () => world.filtersByRe2,
      version: VERSION,
      beforeStatsRead: () => void world.flushes++,
      commandLineOptions: commandLineOptions(),
      node: {
        id: 'node-1',
        cluster: 'edge',
        metadata: { role: 'front', zones: ['a', 'b'] },
        locality: { region: 'eu', zone: 'eu-1', subZone: '' },
        extensions: [{ name: 'proxy.filters.http.router', category: 'proxy.filters.http', disabled: false }],
      },
      hotRestartVersion: 'disabled',
      memory: async () => ({
        allocated: 4_954_424,
        heap: 8_388_608,
        unmapped: 0,
        free: 1_393_816,
        threadCaches: 2_040_368,
        physical: 9_000_000,
      }),
      profilePath: '/var/log/proxy/proxy.prof',
      heapDump: async () => Buffer.from('a profile'),
      contention: async () => ({ count: 17, currentWaitNs: 250_000, lifetimeWaitNs: 9_007_199_254_740_991 }),
    },
    clusters: clustersView(CLUSTERS),
    config: CONFIG,
    init: { unready: () => UNREADY },
    listeners: {
      listeners: () => [
        { name: 'ingress', addresses: [ip('0.0.0.0', 10_000), ip('::1', 10_000)], accepting: 'yes' },
        { name: 'local', addresses: [{ kind: 'pipe', path: '/run/weir.sock', mode: 0o600 }], accepting: 'stopped' },
      ],
    },
    eventStream: { listen: oneBatch },
    tap: { isConfigured: true, begin: oneTrace },
    stats: await someStats(),
    commands: {
      ...NO_COMMANDS,
      quit: () => void world.quits++,
      reopenLogs: () => void world.reopens++,
      resetCounters: () => void world.resets++,
      drainListeners: (order) => void world.drains.push(order),
      modifyRuntime: (changes) => world.runtime.modify(changes),
    },
    traffic: {
      connectionOpened: () => void world.traffic.push('open'),
      connectionRefused: () => void world.traffic.push('refused'),
      connectionClosed: ({ isLocal }) => void world.traffic.push(isLocal ? 'close' : 'closed by client'),
      bytesMoved(received, sent) {
        world.bytes += received + sent;
      },
      requestStarted: () => void world.traffic.push('start'),
      requestEnded: ({ status }) => void world.traffic.push(`end ${status}`),
    },
  };
}

export function clustersView(clusters: readonly ClusterView[], version = 'static'): ClustersView {
  return {
    versionInfo: () => version,
    cluster: (wanted) => clusters.find(({ name }) => name === wanted),
    clusters: () => clusters,
  };
}

/** Of a tap that ends behind it. */
function oneTrace({ configId }: { readonly configId: string }): ReturnType<TapView['begin']> {
  if (configId !== 'edge') return configId === 'busy' ? 'attached' : 'unknown-config-id';
  async function* traces(): AsyncGenerator<TapTrace> {
    const request = { headers: [[':path', '/']] as const, body: null, trailers: [], receivedMs: null };
    yield { kind: 'exchange', request, response: null };
  }
  return Object.assign(traces(), { close() {} });
}

/** Of a server that ends behind it. */
function oneBatch(): EventFeedView {
  async function* batches(): AsyncGenerator<readonly string[]> {
    yield ['data: {"type": "HystrixCommand", "name": "web"}\n\n', ':\n\n'];
  }
  return Object.assign(batches(), { close() {} });
}

const UNREADY: readonly UnreadyView[] = [
  {
    component: 'server',
    name: '',
    message: new Uint8Array(0),
    targets: ['cluster manager', 'Listener-init-target main'],
  },
  { component: 'listener', name: 'main', message: Buffer.from('main'), targets: ['Listener-init-target main'] },
  { component: 'cluster', name: 'web', message: Buffer.from('web'), targets: ['first resolution of web.example'] },
];

const CERTIFICATES: readonly CertificatesView[] = [
  {
    authorities: [],
    chains: [
      {
        path: '/etc/weir/cert.pem',
        serialNumber: 'BA7A5EE3C1AB',
        dnsNames: ['example.test', 'www.example.test'],
        uris: ['spiffe://example.test/web'],
        ipAddresses: ['192.0.2.1'],
        validFromMs: Date.UTC(2026, 0, 1),
        expiresMs: Date.UTC(2026, 0, 31, 23),
        ocsp: { validFromMs: Date.UTC(2026, 0, 2), expiresMs: Date.UTC(2026, 0, 9) },
      },
    ],
  },
  {
    authorities: [
      {
        path: '<inline>',
        serialNumber: '01',
        dnsNames: [],
        uris: [],
        ipAddresses: [],
        validFromMs: Date.UTC(2025, 0, 1),
        expiresMs: Date.UTC(2025, 11, 31),
        ocsp: null,
      },
    ],
    chains: [],
  },
];

function commandLineOptions() {
  const context = { program: 'weir', version: '', hotRestartVersion: () => 'disabled', environment: {} };
  const outcome = parseCommandLine(['-c', 'front.yaml', '--concurrency', '2', '-l', 'warning'], context);
  if (outcome.kind !== 'run') throw new Error(outcome.stderr);
  return commandLineOptionsJson(outcome.options);
}

function ip(address: string, port: number): Address {
  return { kind: 'ip', ip: address, port };
}

const LIMITS = { maxConnections: 1024, maxPendingRequests: 1024, maxRequests: 1024, maxRetries: 3 };
const NO_LOCALITY = { region: '', zone: '', subZone: '' };

function host(changes: Partial<HostView>): HostView {
  return {
    address: ip('127.0.0.1', 8080),
    hostname: '',
    healthFlags: 0,
    weight: 1,
    locality: NO_LOCALITY,
    canary: false,
    priority: 0,
    successRate: -1,
    localOriginSuccessRate: -1,
    stats: {
      cx_active: 1,
      cx_connect_fail: 0,
      cx_total: 1,
      rq_active: 0,
      rq_error: 0,
      rq_success: 12,
      rq_timeout: 0,
      rq_total: 12,
    },
    lastCheck: undefined,
    decidingCheck: undefined,
    lastEjection: undefined,
    ...changes,
  };
}

/** Not in the order of their names. */
const CLUSTERS: readonly ClusterView[] = [
  {
    name: 'web',
    observabilityName: 'web',
    outlier: {
      successRateAverage: -1,
      successRateEjectionThreshold: 99.5,
      localOriginSuccessRateAverage: 33.333333333,
      localOriginSuccessRateEjectionThreshold: -1,
    },
    circuitBreakers: { default: LIMITS, high: { ...LIMITS, maxConnections: 4096 } },
    addedViaApi: false,
    edsServiceName: '',
    tracksHosts: false,
    hosts: () => [
      host({}),
      host({
        address: ip('2001:db8::1', 443),
        hostname: 'web.example',
        healthFlags: 0x1 | 0x4,
        weight: 100,
        locality: { region: 'eu', zone: 'eu-1', subZone: 'rack-7' },
        canary: true,
        priority: 1,
        successRate: 99.25,
        lastCheck: { kind: 'http', endedMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6), hasPassed: false, detail: 'HTTP 503' },
        decidingCheck: { kind: 'tcp', endedMs: 0, hasPassed: false, detail: 'answered a::b\n' },
        lastEjection: {
          kind: 'success-rate',
          successRate: 62.5,
          count: 3,
          beganMs: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
          endedMs: Date.UTC(2026, 0, 2, 3, 5, 5, 6),
        },
      }),
    ],
  },
  {
    name: 'api',
    observabilityName: 'api_renamed',
    outlier: undefined,
    circuitBreakers: { default: LIMITS, high: LIMITS },
    addedViaApi: true,
    edsServiceName: 'api-service',
    tracksHosts: false,
    hosts: () => [host({ address: { kind: 'pipe', path: '/run/api.sock', mode: 0 } })],
  },
];

/** Nothing is counted. */
export const NO_STATS: StatsView = {
  countersAndGauges: () => noBatches(),
  histograms: () => noBatches(),
  textReadouts: () => [],
  numericFamilies: () => noBatches(),
  histogramFamilies: () => noBatches(),
  tagged: (name) => ({ extractedName: name, tags: [] }),
};

async function* noBatches(): AsyncGenerator<never> {}
