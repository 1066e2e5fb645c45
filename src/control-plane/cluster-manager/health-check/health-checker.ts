// Active health checks of one cluster: a check for each of its hosts, their counts, and who is told when something has
// changed. Main thread. Owns the probes, and with them their connections.
//
//   made ──start──► RUNNING, checks every host that setHosts names ──stop──► STOPPED

import type { Address } from '../../../base/address.ts';
import type { Clock } from '../../../base/clock.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import type { Random } from '../../../base/random.ts';
import type { RuntimeValues } from '../../../base/runtime.ts';
import { MAX_CHECK_INTERVAL, MIN_CHECK_INTERVAL, VERIFY_CLUSTER } from '../../../base/runtime-values.ts';
import {
  type HealthCheckSettings,
  type Locality,
  type UpstreamTlsSettings,
  upstreamContextsOf,
} from '../../../snapshot/index.ts';
import { HEALTH_CHECK_STATS, type StatsStore } from '../../../stats/index.ts';
import type { Http1Codec } from '../../../wasm/http1.ts';
import { HealthFlag } from '../../../wasm/shared-memory.ts';
import type { ActiveHost } from '../active-host.ts';
import type { FailureType, Verdict } from './check-state.ts';
import type { HealthEventLogs } from './event-log.ts';
import { GrpcProbe } from './grpc-probe.ts';
import type { HandshakeTurns } from './handshake-turns.ts';
import { type CheckableHost, HostCheck, type HostCheckListener } from './host-check.ts';
import { HttpProbe } from './http-probe.ts';
import { Http2Probe } from './http2-probe.ts';
import type { Probe, ProbeOrigin } from './probe.ts';
import { type AwaitingCheck, ProbeTls, type SecuredCluster } from './probe-tls.ts';
import { RedisProbe } from './redis-probe.ts';
import { TcpProbe } from './tcp-probe.ts';

const { failedActiveHealthCheck: FAILED, degradedActiveHealthCheck: DEGRADED } = HealthFlag;

/** What checks work with; the same for all clusters. */
export interface HealthCheckTools {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly random: Random;
  readonly runtime: RuntimeValues;
  readonly stats: Pick<StatsStore, 'scope'>;
  readonly events: HealthEventLogs;
  /** Of checks over TLS; one for all clusters. */
  readonly handshakes: HandshakeTurns;
  /** Made when the first check by HTTP needs it. */
  readonly codec: () => Http1Codec;
  /** First part of the names of the proxy's own headers, without its final '-'. */
  readonly headerPrefix: string;
}

/** A host as its checker sees it. */
export interface CheckedHost extends CheckableHost {
  readonly isCheckDisabled: boolean;
  readonly address: Address;
  readonly locality: Locality;
  readonly snapshot: Parameters<ProbeTls['of']>[0];
}

/** The cluster whose hosts are checked. */
export interface CheckedCluster<Host = ActiveHost> extends SecuredCluster {
  readonly name: string;
  /** Where connections come from. */
  readonly origin: ProbeOrigin;
  /** It has had a connection that was no check. */
  hasTraffic(): boolean;
  /** A check has passed; flags are as it leaves them. */
  onPassed(host: Host): void;
  /** Flags of the host have changed in a way that matters to balancing. */
  onHealthChange(host: Host): void;
}

/** Percent of the checks that look at the name of the service; the runtime may say less. */
const ALL_CHECKS = 100;

export class HealthChecker<Host extends CheckedHost = ActiveHost> implements HostCheckListener {
  readonly #settings: HealthCheckSettings;
  readonly #cluster: CheckedCluster<Host>;
  readonly #tools: HealthCheckTools;
  readonly #stats;
  /** Undefined where all checks go in cleartext. */
  readonly #tls: ProbeTls | undefined;
  #checks = new Map<Host, HostCheck>();
  /** Hosts of the first round that have not been checked yet. */
  #unchecked = new Set<HostCheck>();
  #onFirstRound: (() => void) | undefined;
  #healthy = 0;
  #degraded = 0;
  #isRunning = false;

  constructor(settings: HealthCheckSettings, cluster: CheckedCluster<Host>, tools: HealthCheckTools) {
    this.#settings = settings;
    this.#cluster = cluster;
    this.#tools = tools;
    this.#stats = tools.stats.scope(`cluster.${cluster.statName}.health_check.`).allocate(HEALTH_CHECK_STATS);
    const isSecured = upstreamContextsOf(cluster).some((tls) => tls !== undefined);
    this.#tls = isSecured ? new ProbeTls(cluster, settings, tools.stats, tools.handshakes) : undefined;
  }

  /** Connections from now on are secured by other settings. @param changed by place (upstreamContextsOf). */
  secure(changed: ReadonlyMap<number, UpstreamTlsSettings>): void {
    this.#tls?.update(changed);
  }

  /** Called once. */
  start(): void {
    this.#isRunning = true;
    for (const check of [...this.#checks.values()]) check.start();
  }

  /** Idempotent. */
  stop(): void {
    this.#isRunning = false;
    for (const check of this.#checks.values()) check.stop();
    this.#checks = new Map();
  }

  /** From now on these hosts are checked; those that were before go on as they are. */
  setHosts(hosts: readonly Host[]): void {
    const former = this.#checks;
    const checks = new Map<Host, HostCheck>();
    const added: HostCheck[] = [];
    for (const host of hosts) {
      if (host.isCheckDisabled) continue;
      const known = former.get(host);
      const check = known ?? this.#createCheck(host);
      if (known === undefined) added.push(check);
      checks.set(host, check);
    }
    this.#checks = checks;
    for (const [host, check] of former) {
      if (checks.has(host)) continue;
      check.stop();
      this.#count(check, undefined);
      this.#noteChecked(check);
    }
    this.#begin(added);
  }

  /** These are checked, too; none of them was before. */
  addHosts(hosts: readonly Host[]): void {
    const added = hosts.filter((host) => !host.isCheckDisabled).map((host) => this.#createCheck(host));
    for (const check of added) this.#checks.set(check.host as Host, check);
    this.#begin(added);
  }

  #begin(checks: readonly HostCheck[]): void {
    for (const check of checks) this.#count(check, check.host.healthFlags);
    if (this.#isRunning) for (const check of checks) check.start();
  }

  /** @param onDone told once, when each of the present hosts has been checked or has gone; at once without any. */
  awaitFirstRound(onDone: () => void): void {
    this.#onFirstRound = onDone;
    this.#unchecked = new Set([...this.#checks.values()].filter((check) => check.isUnchecked));
    this.#endRoundIfDone();
  }

  /** A host has asked in an answer to a client to be left out. */
  failPassively(is: (host: Host) => boolean): void {
    for (const [host, check] of this.#checks) if (is(host)) check.failPassively();
  }

  onAttempt(): void {
    this.#stats.add('attempt');
  }

  onVerdict(check: HostCheck, { transition, events }: Verdict, failureType: FailureType | undefined): void {
    const host = check.host as Host;
    if (failureType === undefined) this.#stats.add('success');
    else {
      this.#stats.add('failure');
      if (failureType === 'passive') this.#stats.add('passive_failure');
      else if (failureType !== 'active') this.#stats.add('network_failure');
    }
    const { eventLogPaths, probe } = this.#settings;
    const { name: clusterName } = this.#cluster;
    const { address, locality } = host;
    for (const event of events) {
      this.#tools.events.write(eventLogPaths, { clusterName, address, locality, checkerKind: probe.kind }, event);
    }
    if (transition === 'changed') {
      this.#count(check, host.healthFlags);
      this.#cluster.onHealthChange(host);
    }
    if (failureType === undefined) this.#cluster.onPassed(host);
    this.#noteChecked(check);
  }

  #noteChecked(check: HostCheck): void {
    this.#unchecked.delete(check);
    this.#endRoundIfDone();
  }

  #endRoundIfDone(): void {
    if (this.#unchecked.size > 0) return;
    const onDone = this.#onFirstRound;
    this.#onFirstRound = undefined;
    onDone?.();
  }

  #createCheck(host: Host): HostCheck {
    const { clock, random, runtime } = this.#tools;
    const tools = {
      clock,
      random,
      bounds: () => ({
        minMs: runtime.integer(MIN_CHECK_INTERVAL) ?? 0,
        maxMs: runtime.integer(MAX_CHECK_INTERVAL) ?? Number.MAX_SAFE_INTEGER,
      }),
      hasTraffic: () => this.#cluster.hasTraffic(),
    };
    const awaiting: AwaitingCheck = { hold: () => check.hold(), goOn: () => check.goOn() };
    const check = new HostCheck(host, this.#settings, tools, this.#createProbe(host, awaiting), this);
    return check;
  }

  #createProbe(host: Host, check: AwaitingCheck): Probe {
    const { probe, reusesConnection } = this.#settings;
    const { faults, headerPrefix } = this.#tools;
    const tls = this.#tls;
    const origin =
      tls === undefined
        ? this.#cluster.origin
        : { ...this.#cluster.origin, security: () => tls.of(host.snapshot, check) };
    if (probe.kind === 'tcp') return new TcpProbe(probe, reusesConnection, origin, faults);
    if (probe.kind === 'redis') return new RedisProbe(probe, reusesConnection, origin, faults);
    if (probe.kind === 'grpc') return new GrpcProbe(probe, reusesConnection, origin, faults);
    const verifiesService = (): boolean => this.#verifiesService();
    if (probe.speaksHttp2) {
      return new Http2Probe(probe, reusesConnection, origin, { faults, headerPrefix, verifiesService });
    }
    return new HttpProbe(probe, reusesConnection, origin, { codec: this.#tools.codec(), faults, verifiesService });
  }

  #verifiesService(): boolean {
    const { runtime, random } = this.#tools;
    if (!runtime.happens(VERIFY_CLUSTER, ALL_CHECKS, random.u32())) return false;
    this.#stats.add('verify_cluster');
    return true;
  }

  /** Corrects the gauges by what is different about one host. @param flags undefined for a host that has gone. */
  #count(check: HostCheck, flags: number | undefined): void {
    const { countedFlags: before } = check;
    this.#healthy += Number(isHealthy(flags)) - Number(isHealthy(before));
    this.#degraded += Number(isDegraded(flags)) - Number(isDegraded(before));
    check.countedFlags = flags;
    this.#stats.set('healthy', this.#healthy);
    this.#stats.set('degraded', this.#degraded);
  }
}

function isHealthy(flags: number | undefined): boolean {
  return flags !== undefined && (flags & FAILED) === 0;
}

function isDegraded(flags: number | undefined): boolean {
  return ((flags ?? 0) & DEGRADED) !== 0;
}
