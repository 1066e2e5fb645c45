// The chaos run: twenty upstreams that hang, reset, slow down, answer errors, vanish from DNS and come back, under load
// with health checks, outlier detection and retries. What must hold: an answer is right or an error that the stats
// explain, most are right, nothing is left over, and once all upstreams are well all requests succeed.
//
//   start ─► chaos ─► recovery: all are members, all answers are right ─► rest ─► SIGTERM

import { setTimeout as delay } from 'node:timers/promises';
import { httpFilter, type JsonObject, listenerWith, socketAddress } from '../support/bootstrap.ts';
import { startWeir, type WeirProcess } from '../support/weir-process.ts';
import { parseStats, type Stats } from './books.ts';
import { CHAOS_NAME, ChaosUpstreams, HEALTH_PATH } from './chaos-upstreams.ts';
import { HttpWire } from './http-wire.ts';
import { Ledger } from './ledger.ts';
import { PayloadCheck } from './payload.ts';
import { checkResources, type Resources, resourcesOf } from './resources.ts';
import { untilAtRest } from './rest.ts';
import { anyLength, anySeed, below, framing, head, nextId, writeBody } from './traffic.ts';

export interface ChaosRunOptions {
  readonly seconds: number;
  readonly workers: number;
  /** Between two changes of the mood of an upstream. */
  readonly changeMs: number;
  /** Of the answers to clients; less is a violation. */
  readonly leastSuccessShare: number;
  /** Whether to hold memory against the state after the first fifth: that takes minutes to mean anything. */
  readonly checksMemory: boolean;
  /** Ends the chaos early; what must hold afterwards is checked all the same. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (text: string) => void;
}

export interface ChaosRunReport {
  readonly seconds: number;
  readonly violations: readonly string[];
  readonly outcomes: readonly (readonly [string, number])[];
  /** Changes of the mood of an upstream. */
  readonly changes: number;
  readonly successShare: number;
  readonly warm: Resources | undefined;
  readonly end: Resources | undefined;
  readonly stats: Stats;
}

/** What clients have seen. */
interface Seen {
  successes: number;
  errors: number;
  cutOff: number;
}

interface ChaosGround {
  readonly port: number;
  readonly ledger: Ledger;
  readonly seen: Seen;
  isOver(): boolean;
}

const UPSTREAM_COUNT = 20;
const CLIENTS = 12;
const REQUESTS_PER_CONNECTION = 50;
const REQUESTS_AFTERWARDS = 200;
const RECOVERY_LIMIT_MS = 60_000;
const POLL_MS = 100;
const MAX_BODY_BYTES = 30_000;
/** Behind `cluster.chaos.`: an error that reaches a client is one of these. */
const EXPLANATIONS = [
  'upstream_rq_retry_limit_exceeded',
  'upstream_rq_retry_overflow',
  'upstream_rq_timeout',
  'upstream_rq_pending_overflow',
  'upstream_cx_none_healthy',
  'retry_or_shadow_abandoned',
];

export async function runChaos(options: ChaosRunOptions): Promise<ChaosRunReport> {
  const ledger = new Ledger();
  const seen: Seen = { successes: 0, errors: 0, cutOff: 0 };
  const upstreams = await ChaosUpstreams.start(UPSTREAM_COUNT);
  const say = options.onProgress ?? ((): void => {});
  try {
    await using weir = await startWeir({
      configYaml: JSON.stringify(chaosBootstrap(upstreams)),
      args: ['--concurrency', String(options.workers), '-l', 'warning'],
    });
    const { port } = (await weir.listeners()).get('http')!;
    const carry = async (seconds: number): Promise<void> => {
      const endsAt = performance.now() + seconds * 1000;
      const isOver = (): boolean => performance.now() >= endsAt || options.signal?.aborted === true;
      const ground = { port, ledger, seen, isOver };
      await Promise.all([
        upstreams.rave(isOver, options.changeMs),
        ...Array.from({ length: CLIENTS }, () => ask(ground)),
      ]);
    };
    say(`chaos for ${options.seconds} s`);
    await carry(options.seconds / 5);
    const warm = resourcesOf(weir.pid);
    await carry((options.seconds * 4) / 5);
    say('recovery');
    await upstreams.recover();
    await untilRecovered(weir, ledger);
    const successShare = seen.successes / (seen.successes + seen.errors + seen.cutOff);
    if (!(successShare >= options.leastSuccessShare))
      ledger.violation(`only ${successShare} of all requests succeeded`);
    await askAfterwards(port, ledger, seen);
    say('at rest');
    await upstreams.vanish();
    const stats = await untilAtRest(weir, ledger);
    const end = resourcesOf(weir.pid);
    checkResources(ledger, warm, end, options.checksMemory);
    checkStats(ledger, stats, seen, upstreams.requests);
    const { code, signal } = await weir.stop();
    if (code !== 0) ledger.violation(`weir ended with ${code ?? signal} at SIGTERM`);
    const { violations, outcomes } = ledger;
    const { seconds } = options;
    return { seconds, violations, outcomes, changes: upstreams.changes, successShare, warm, end, stats };
  } finally {
    await upstreams.close();
  }
}

/** One client: request after request, a new connection now and then. */
async function ask(ground: ChaosGround): Promise<void> {
  while (!ground.isOver()) {
    const wire = new HttpWire(ground.port);
    try {
      for (let count = 0; count < REQUESTS_PER_CONNECTION && !ground.isOver(); count += 1) {
        if (!(await exchange(wire, ground.ledger, ground.seen))) break;
      }
    } catch (error) {
      ground.ledger.violation(String(error));
    } finally {
      wire.close();
    }
  }
}

/** @returns whether the connection may be used again. */
async function exchange(wire: HttpWire, ledger: Ledger, seen: Seen): Promise<boolean> {
  const [id, seed, length] = [nextId(), anySeed(), anyLength(10, MAX_BODY_BYTES)];
  const isUpload = below(3) === 0;
  const check = new PayloadCheck(seed, length);
  let verdict = '';
  const answered = wire.response((chunk) => {
    if (isUpload) verdict += chunk.toString('latin1');
    else check.accept(chunk);
  });
  if (isUpload) {
    const isChunked = below(2) === 0;
    await wire.write(head('POST', `/sink/${seed}/${length}`, id, framing(length, isChunked)));
    await writeBody(wire, seed, length, isChunked);
  } else await wire.write(head('GET', `/get/${seed}/${length}`, id));
  const response = await answered;
  const kind = isUpload ? 'upload' : 'download';
  ledger.count(kind, response === null ? 'cut off' : String(response.status));
  if (response === null) seen.cutOff += 1;
  else if (response.status === 200) {
    seen.successes += 1;
    if (!response.head.includes(`\r\nx-soak-id: ${id}\r\n`)) {
      ledger.violation(`${kind}: not the answer to ${id}: ${response.head}`);
    }
    if (!isUpload) verdict = check.verdict();
    if (verdict !== '') ledger.violation(`${kind}: ${verdict}`);
  } else {
    seen.errors += 1;
    if (![500, 502, 503, 504].includes(response.status)) ledger.violation(`${kind}: ${response.head} ${verdict}`);
  }
  return response !== null && !response.isLast;
}

/** Waits until every upstream is a member that requests go to. */
async function untilRecovered(weir: WeirProcess, ledger: Ledger): Promise<void> {
  const giveUpAt = performance.now() + RECOVERY_LIMIT_MS;
  for (;;) {
    const stats = parseStats(await weir.admin('/stats?filter=^cluster\\.chaos\\.'));
    const stat = (name: string): number => stats.get(`cluster.chaos.${name}`) ?? 0;
    const healthy = stat('membership_healthy');
    const ejected = stat('outlier_detection.ejections_active');
    if (healthy === UPSTREAM_COUNT && stat('membership_total') === UPSTREAM_COUNT && ejected === 0) return;
    if (performance.now() > giveUpAt) {
      ledger.violation(`${healthy} of ${UPSTREAM_COUNT} are healthy, ${ejected} ejected, although all are well`);
      return;
    }
    await delay(POLL_MS);
  }
}

async function askAfterwards(port: number, ledger: Ledger, seen: Seen): Promise<void> {
  const before = { ...seen };
  const wire = new HttpWire(port);
  for (let count = 0; count < REQUESTS_AFTERWARDS; count += 1) if (!(await exchange(wire, ledger, seen))) break;
  wire.close();
  const succeeded = seen.successes - before.successes;
  if (succeeded !== REQUESTS_AFTERWARDS) {
    ledger.violation(`${succeeded} of ${REQUESTS_AFTERWARDS} requests succeeded although all upstreams were well`);
  }
}

/** The stats explain what clients and upstreams have seen. */
function checkStats(ledger: Ledger, stats: Stats, seen: Seen, received: number): void {
  const stat = (name: string): number => stats.get(name) ?? 0;
  const upstream = (name: string): number => stat(`cluster.chaos.${name}`);
  const expect = (holds: boolean, text: string): void => void (holds || ledger.violation(`stats: ${text}`));
  const { successes, errors, cutOff } = seen;
  const [rq2xx, rq5xx] = [stat('http.chaos.downstream_rq_2xx'), stat('http.chaos.downstream_rq_5xx')];
  expect(rq2xx >= successes && rq2xx <= successes + cutOff, `${rq2xx} answers with 2xx, clients saw ${successes}`);
  expect(rq5xx === errors, `${rq5xx} answers with 5xx, clients saw ${errors}`);
  const explained = EXPLANATIONS.reduce((sum, name) => sum + upstream(name), 0);
  expect(errors <= explained, `${errors} errors, of which ${explained} are explained`);
  const [requests, retries] = [stat('http.chaos.downstream_rq_total'), upstream('upstream_rq_retry')];
  const attempts = upstream('upstream_rq_total');
  expect(attempts <= requests + retries, `${attempts} attempts for ${requests} requests and ${retries} retries`);
  expect(received <= attempts, `${received} requests reached upstreams in ${attempts} attempts`);
  expect(upstream('upstream_rq_retry_success') <= retries, 'more retries succeeded than were made');
  expect(stat('server.worker_restarts') === 0, `server.worker_restarts is ${stat('server.worker_restarts')}`);
}

function chaosBootstrap(upstreams: ChaosUpstreams): JsonObject {
  const address = socketAddress('127.0.0.1', 0);
  const manager = httpFilter({
    stat_prefix: 'chaos',
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          retry_policy: {
            retry_on: '5xx,connect-failure,reset',
            num_retries: 4,
            per_try_timeout: '1s',
            retry_back_off: { base_interval: '0.005s', max_interval: '0.05s' },
            retry_host_predicate: [{ name: 'envoy.retry_host_predicates.previous_hosts' }],
            host_selection_retry_max_attempts: 5,
          },
          routes: [{ match: { prefix: '/' }, route: { cluster: 'chaos', timeout: '10s' } }],
        },
      ],
    },
  });
  const limits = { max_connections: 1000, max_requests: 1000, max_pending_requests: 1000, max_retries: 100 };
  return {
    admin: { address },
    stats_flush_interval: '0.2s',
    static_resources: {
      listeners: [listenerWith([manager], { name: 'http', stat_prefix: 'http', address })],
      clusters: [
        {
          name: 'chaos',
          type: 'STRICT_DNS',
          lb_policy: 'LEAST_REQUEST',
          connect_timeout: '1s',
          dns_lookup_family: 'V4_ONLY',
          dns_refresh_rate: '0.2s',
          dns_resolvers: [socketAddress('127.0.0.1', upstreams.dnsPort)],
          circuit_breakers: { thresholds: [limits] },
          common_lb_config: { healthy_panic_threshold: { value: 20 } },
          health_checks: [
            {
              timeout: '0.5s',
              interval: '0.3s',
              unhealthy_threshold: 2,
              healthy_threshold: 1,
              http_health_check: { path: HEALTH_PATH },
            },
          ],
          outlier_detection: {
            consecutive_5xx: 3,
            interval: '0.2s',
            base_ejection_time: '0.5s',
            max_ejection_time: '2s',
            max_ejection_percent: 50,
          },
          load_assignment: {
            cluster_name: 'chaos',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(CHAOS_NAME, upstreams.port) } }] }],
          },
        },
      ],
    },
  };
}
