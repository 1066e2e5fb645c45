// Health discovery, where the bootstrap names a server for it. Main thread.

import { nodeMessage } from '../../config/exchange.ts';
import type { BootstrapConfig } from '../../config/index.ts';
import { HDS_DELEGATE_STATS, type StatsStore } from '../../stats/index.ts';
import { HealthDelegate, type HealthDelegateDependencies } from './health-delegate.ts';

export interface HealthDelegationDependencies extends Omit<HealthDelegateDependencies, 'node' | 'counts'> {
  readonly stats: Pick<StatsStore, 'scope'>;
  /** What servers of the older interface are told of the program. */
  readonly buildVersion: string;
}

/** @returns what is to be started when there are clusters to speak to; undefined where nobody has hosts checked. */
export function healthDelegation(
  { healthDelegation: settings, messages }: Pick<BootstrapConfig, 'healthDelegation' | 'messages'>,
  deps: HealthDelegationDependencies,
): HealthDelegate | undefined {
  if (settings === undefined) return undefined;
  const counts = deps.stats.scope('hds_delegate.').allocate(HDS_DELEGATE_STATS);
  const isOlder = settings.transportGeneration === 'v2';
  const node = nodeMessage(messages.bootstrap, isOlder ? deps.buildVersion : undefined);
  return new HealthDelegate(settings, { ...deps, node, counts });
}
