// Reports of load, where the bootstrap names a server for them: what counts, from the start, and what reports. Main thread.

import type { BootstrapConfig } from '../../config/index.ts';
import { LOAD_REPORTER_STATS, type StatsStore } from '../../stats/index.ts';
import { LateService, type LateServiceDependencies } from '../subscription/management-server/late-service.ts';
import type { ServerLinkDependencies } from '../subscription/management-server/server-link.ts';
import { LoadLedger } from './load-ledger.ts';
import type { LoadReporterDependencies } from './load-reporter.ts';

export interface LoadReportingDependencies extends ServerLinkDependencies, Omit<LateServiceDependencies, 'bootstrap'> {
  readonly stats: StatsStore;
}

export interface LoadReporting {
  readonly ledger: LoadLedger;
  readonly service: LateService;
}

/** @returns undefined where nobody is told of load. */
export function loadReporting(
  { loadReporting: settings, messages }: Pick<BootstrapConfig, 'loadReporting' | 'messages'>,
  deps: LoadReportingDependencies,
): LoadReporting | undefined {
  if (settings === undefined) return undefined;
  const { stats, clock } = deps;
  const counts = stats.scope('load_reporter.').allocate(LOAD_REPORTER_STATS);
  const ledger = new LoadLedger(stats, clock);
  const load = async () => {
    const { LoadReporter } = await import('./load-reporter.ts');
    return (node: LoadReporterDependencies['node']) => new LoadReporter(settings, { ...deps, ledger, node, counts });
  };
  const late = { ...deps, bootstrap: messages.bootstrap };
  return { ledger, service: new LateService('beginning to report load', settings, late, load) };
}
