// Joins the admin interface to the running server: what it may read, and what it may command.

import { AdminServer, type AdminServerOptions, type AdmissionRules } from '../admin/index.ts';
import type { Address } from '../base/address.ts';
import type { Clock } from '../base/clock.ts';
import { descriptorBudget } from '../base/descriptor-budget.ts';
import type { FaultBoundary } from '../base/fault-boundary.ts';
import { STATS_FILTER_BY_RE2 } from '../base/runtime-values.ts';
import { compileStringMatch } from '../base/string-match.ts';
import type { SystemCalls } from '../base/system-calls.ts';
import { hotRestartVersion, type Version } from '../base/version.ts';
import { commandLineOptionsJson, type ServerOptions } from '../cli/index.ts';
import { type ConfigFault, formatFault, linkedExtensions, shownConfigYaml } from '../config/index.ts';
import { engines, measureContention, Profilers, type Server, type WorkerPool } from '../control-plane/index.ts';
import { EXTENSIONS } from '../extensions/control-registry.ts';
import type { Loggers } from '../log/index.ts';
import type { AdminAccessLog } from './admin-access-log.ts';
import { AdminOverview } from './admin-overview.ts';
import { adminTraffic } from './admin-traffic.ts';
import type { YieldingAdmin } from './hot-restart/epoch.ts';
import { disabledBy } from './load.ts';

export interface AdminParts {
  readonly server: Server;
  readonly options: ServerOptions;
  readonly version: Version;
  readonly loggers: Loggers;
  /** Where one is configured. */
  readonly accessLog: AdminAccessLog | undefined;
  readonly systemCalls: SystemCalls | undefined;
  readonly workers: WorkerPool;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  /** What there was to say about the configuration. */
  readonly configFaults: readonly ConfigFault[];
  /** Begins the clean shutdown. */
  readonly quit: () => void;
  /** What SIGUSR1 does. */
  readonly reopenLogs: () => void;
  /** A descriptor of a socket that listens on the address already: the interface's from now on. */
  readonly inherited: number | undefined;
}

export interface RunningAdmin extends YieldingAdmin {
  /** With the port in use. */
  readonly address: Address;
  close(): Promise<void>;
}

/**
 * Opens the admin interface of a bootstrap that asks for one, and writes its address where the command line says.
 * @throws WeirError WEIR_ADMIN_LISTEN when the address cannot be bound.
 */
export async function startAdmin(parts: AdminParts): Promise<RunningAdmin> {
  const { administerBelow: acceptBelow } = descriptorBudget(parts.systemCalls?.descriptorLimit());
  const { systemCalls } = parts;
  const { address } = parts.server.bootstrap.admin!;
  const warnings = parts.configFaults.filter(({ severity }) => severity === 'warning').map(formatFault);
  const overview = new AdminOverview({ ...parts, warnings, epoch: parts.options.restartEpoch });
  const profilers = new Profilers({
    engines: engines(parts.workers),
    clock: parts.clock,
    log: parts.loggers.get('main'),
    path: parts.server.bootstrap.admin!.profilePath,
  });
  const admin = new AdminServer({
    ...adminContext(parts, profilers),
    ...admissionRules(parts),
    overview,
    address,
    acceptBelow,
    systemCalls,
  });
  await admin.listen(parts.inherited);
  overview.history.start();
  const { adminAddressPath } = parts.options;
  if (adminAddressPath !== '') await admin.writeAddressFile(adminAddressPath);
  return {
    address: admin.address,
    yield: (wanted) => admin.yield(wanted),
    resume: () => admin.resume(),
    own: () => admin.own(),
    async close() {
      overview.close();
      profilers.close();
      await admin.close();
    },
  };
}

function admissionRules({ server, options }: AdminParts): AdmissionRules {
  const tests = server.bootstrap.admin!.allowedPaths.map(compileStringMatch);
  return {
    allowsPath: tests.length === 0 ? undefined : (path) => tests.some((test) => test(path)),
    isReadOnly: options.adminReadOnly,
    names: options.adminName,
  };
}

function adminContext(parts: AdminParts, profilers: Profilers): Omit<AdminServerOptions, 'address' | 'acceptBelow'> {
  const { server, options, version, loggers, accessLog, clock, faults, quit, reopenLogs } = parts;
  const { node, admin } = server.bootstrap;
  return {
    clock,
    faults,
    server: {
      state: () => server.state,
      wallMs: () => clock.wallMs(),
      certificates: () => server.certificates.list(),
      beforeStatsRead: () => server.beforeStatsRead(),
      uptimeCurrentEpochSeconds: () => server.uptimeSeconds,
      uptimeAllEpochsSeconds: () => server.uptimeAllEpochsSeconds,
      filtersByRe2: () => server.runtime.values.hasFeature(STATS_FILTER_BY_RE2),
      version,
      commandLineOptions: commandLineOptionsJson({ ...options, configYaml: shownConfigYaml(options.configYaml) }),
      hotRestartVersion: hotRestartVersion(options),
      memory: () => server.memoryReport(),
      profilePath: admin!.profilePath,
      heapDump: () => profilers.dumpHeaps(),
      contention: options.enableMutexTracing ? () => measureContention(clock) : undefined,
      node: {
        ...node,
        extensions: linkedExtensions(EXTENSIONS, disabledBy(options).disabled),
      },
    },
    config: server.config,
    init: { unready: () => server.unready() },
    clusters: server.clusterManager,
    listeners: server.listenerManager,
    eventStream: server.statSinks.eventStream,
    tap: server.taps,
    stats: server.stats,
    traffic: adminTraffic(server.stats),
    ...(accessLog ? { accessLog } : {}),
    loggers,
    lookups: server.stats.lookups,
    runtime: server.runtime,
    commands: {
      quit,
      reopenLogs,
      resetCounters: () => server.stats.resetCounters(),
      failHealthChecks: (isFailing) => server.failHealthChecks(isFailing),
      startProfiler: (kind) => profilers.start(kind),
      stopProfiler: (kind) => profilers.stop(kind),
      drainListeners({ inboundOnly, isGraceful, keepsListeners }) {
        const which = inboundOnly ? 'inbound' : 'all';
        if (isGraceful) server.drainManager.start(which, keepsListeners);
        else server.drainManager.stop(which);
      },
      modifyRuntime: (changes) => server.runtime.modify(changes),
    },
  };
}
