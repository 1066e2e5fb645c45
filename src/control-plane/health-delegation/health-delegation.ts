// Health discovery, where the bootstrap names a server for it. Main thread.

import type { BootstrapConfig } from '../../config/index.ts';
import { HDS_DELEGATE_STATS, type StatsStore } from '../../stats/index.ts';
import { LateService, type LateServiceDependencies } from '../subscription/management-server/late-service.ts';
import type { HealthDelegateDependencies } from './health-delegate.ts';

export interface HealthDelegationDependencies
  extends Omit<HealthDelegateDependencies, 'node' | 'counts'>,
    Omit<LateServiceDependencies, 'bootstrap'> {
  readonly stats: Pick<StatsStore, 'scope'>;
}

/** @returns undefined where nobody has hosts checked. */
export function healthDelegation(
  { healthDelegation: settings, messages }: Pick<BootstrapConfig, 'healthDelegation' | 'messages'>,
  deps: HealthDelegationDependencies,
): LateService | undefined {
  if (settings === undefined) return undefined;
  const counts = deps.stats.scope('hds_delegate.').allocate(HDS_DELEGATE_STATS);
  const load = async () => {
    const { HealthDelegate } = await import('./health-delegate.ts');
    return (node: HealthDelegateDependencies['node']) => new HealthDelegate(settings, { ...deps, node, counts });
  };
  return new LateService(
    'beginning to check hosts for others',
    settings,
    { ...deps, bootstrap: messages.bootstrap },
    load,
  );
}
