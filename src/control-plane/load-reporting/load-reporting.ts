// Reports of load, where the bootstrap names a server for them: what counts, and what reports. Main thread.

import { nodeMessage } from '../../config/exchange.ts';
import type { BootstrapConfig } from '../../config/index.ts';
import { LOAD_REPORTER_STATS, type StatsStore } from '../../stats/index.ts';
import type { ServerLinkDependencies } from '../subscription/management-server/server-link.ts';
import { LoadLedger } from './load-ledger.ts';
import { LoadReporter } from './load-reporter.ts';

export interface LoadReportingDependencies extends ServerLinkDependencies {
  readonly stats: StatsStore;
  /** What servers of the older interface are told of the program. */
  readonly buildVersion: string;
}

export interface LoadReporting {
  readonly ledger: LoadLedger;
  /** To be started when there are clusters to speak to. */
  readonly reporter: LoadReporter;
}

/** @returns undefined where nobody is told of load. */
export function loadReporting(
  { loadReporting: settings, messages }: Pick<BootstrapConfig, 'loadReporting' | 'messages'>,
  deps: LoadReportingDependencies,
): LoadReporting | undefined {
  if (settings === undefined) return undefined;
  const { stats, clock, buildVersion } = deps;
  const counts = stats.scope('load_reporter.').allocate(LOAD_REPORTER_STATS);
  const ledger = new LoadLedger(stats, clock);
  const node = nodeMessage(messages.bootstrap, settings.transportGeneration === 'v2' ? buildVersion : undefined);
  return { ledger, reporter: new LoadReporter(settings, { ...deps, ledger, node, counts }) };
}
