// Parts of a server whose code is loaded before it is made, where its bootstrap has use for them: what a bootstrap says of them cannot change
// while the server runs. Main thread.

import type { BootstrapConfig } from '../../config/index.ts';

export type PartsAtNeed = Partial<
  Pick<typeof import('../at-need.ts'), 'DynamicResources' | 'healthDelegation' | 'loadReporting'>
>;

type Needs = Pick<BootstrapConfig, 'loadReporting' | 'healthDelegation' | 'dynamicResources'>;

export async function loadPartsAtNeed(bootstrap: Needs): Promise<PartsAtNeed> {
  const { loadReporting, healthDelegation, dynamicResources } = bootstrap;
  const needs = [loadReporting, healthDelegation, dynamicResources.clusters, dynamicResources.listeners];
  return needs.some((need) => need !== undefined) ? await import('../at-need.ts') : {};
}
