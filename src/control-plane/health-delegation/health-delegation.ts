// Health discovery, where the bootstrap names a server for it: its code is loaded when the first clusters are warm. Main thread.

import { type BootstrapConfig, nodeMessage, type ServiceStreamSettings } from '../../config/index.ts';
import { HDS_DELEGATE_STATS, type StatsStore } from '../../stats/index.ts';
import type { HealthDelegate, HealthDelegateDependencies } from './health-delegate.ts';

export interface HealthDelegationDependencies extends Omit<HealthDelegateDependencies, 'node' | 'counts'> {
  readonly stats: Pick<StatsStore, 'scope'>;
  /** What servers of the older interface are told of the program. */
  readonly buildVersion: string;
}

export class HealthDelegation {
  readonly #settings: ServiceStreamSettings;
  readonly #bootstrap: Uint8Array;
  readonly #deps: HealthDelegationDependencies;
  readonly #counts;
  #delegate: HealthDelegate | undefined;
  #isClosed = false;

  /** @returns undefined where nobody has hosts checked. */
  static of(
    { healthDelegation, messages }: Pick<BootstrapConfig, 'healthDelegation' | 'messages'>,
    deps: HealthDelegationDependencies,
  ): HealthDelegation | undefined {
    return healthDelegation && new HealthDelegation(healthDelegation, messages.bootstrap, deps);
  }

  private constructor(settings: ServiceStreamSettings, bootstrap: Uint8Array, deps: HealthDelegationDependencies) {
    this.#settings = settings;
    this.#bootstrap = bootstrap;
    this.#deps = deps;
    this.#counts = deps.stats.scope('hds_delegate.').allocate(HDS_DELEGATE_STATS);
  }

  /** There are clusters to speak to. */
  start(): void {
    const { faults, buildVersion } = this.#deps;
    faults.run('beginning to check hosts for others', async () => {
      const { HealthDelegate } = await import('./health-delegate.ts');
      if (this.#isClosed) return;
      const isOlder = this.#settings.transportGeneration === 'v2';
      const node = nodeMessage(this.#bootstrap, isOlder ? buildVersion : undefined);
      this.#delegate = new HealthDelegate(this.#settings, { ...this.#deps, node, counts: this.#counts });
      this.#delegate.start();
    });
  }

  /** Nothing is checked any more. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#delegate?.close();
  }
}
