// Reports of load, where the bootstrap names a server for them: what counts, from the start, and what reports, whose code is loaded
// when the first clusters are warm. Main thread.

import type { Clock } from '../../base/clock.ts';
import { type BootstrapConfig, nodeMessage, type ServiceStreamSettings } from '../../config/index.ts';
import { LOAD_REPORTER_STATS, type StatsStore } from '../../stats/index.ts';
import type { ServerLinkDependencies } from '../subscription/management-server/server-link.ts';
import { LoadLedger } from './load-ledger.ts';
import type { LoadReporter } from './load-reporter.ts';

export interface LoadReportingDependencies extends ServerLinkDependencies {
  readonly clock: Clock;
  readonly stats: StatsStore;
  /** What servers of the older interface are told of the program. */
  readonly buildVersion: string;
}

export class LoadReporting {
  readonly ledger: LoadLedger;
  readonly #settings: ServiceStreamSettings;
  readonly #bootstrap: Uint8Array;
  readonly #deps: LoadReportingDependencies;
  readonly #counts;
  #reporter: LoadReporter | undefined;
  #isClosed = false;

  /** @returns undefined where nobody is told of load. */
  static of(
    { loadReporting, messages }: Pick<BootstrapConfig, 'loadReporting' | 'messages'>,
    deps: LoadReportingDependencies,
  ): LoadReporting | undefined {
    return loadReporting && new LoadReporting(loadReporting, messages.bootstrap, deps);
  }

  private constructor(settings: ServiceStreamSettings, bootstrap: Uint8Array, deps: LoadReportingDependencies) {
    this.#settings = settings;
    this.#bootstrap = bootstrap;
    this.#deps = deps;
    this.#counts = deps.stats.scope('load_reporter.').allocate(LOAD_REPORTER_STATS);
    this.ledger = new LoadLedger(deps.stats, deps.clock);
  }

  /** There are clusters to speak to. */
  start(): void {
    const { faults, buildVersion } = this.#deps;
    faults.run('beginning to report load', async () => {
      const { LoadReporter } = await import('./load-reporter.ts');
      if (this.#isClosed) return;
      const isOlder = this.#settings.transportGeneration === 'v2';
      const node = nodeMessage(this.#bootstrap, isOlder ? buildVersion : undefined);
      const { ledger } = this;
      this.#reporter = new LoadReporter(this.#settings, { ...this.#deps, ledger, node, counts: this.#counts });
      this.#reporter.start();
    });
  }

  /** Tells what has been counted last, within a bound, and nothing any more then. Idempotent. */
  async finish(): Promise<void> {
    this.#isClosed = true;
    await this.#reporter?.finish();
  }
}
