// PreconnectPolicy message → PreconnectSettings. Connections cannot be opened ahead to a host that depends on the request,
// or on what other workers do meanwhile.

import type { PreconnectSettings } from '../../snapshot/index.ts';
import type { BalancedCluster } from './balancing-policy.ts';
import { lbPolicyName } from './cluster-checks.ts';
import type { FaultSink } from './fault-sink.ts';
import { valueOr } from './units.ts';

/** Their next host is the same for every request. */
const FORESEEABLE: ReadonlySet<string> = new Set(['ROUND_ROBIN', 'RANDOM']);

export function convertPreconnect(
  cluster: BalancedCluster,
  at: string,
  faults: FaultSink,
): { readonly preconnect?: PreconnectSettings } {
  const { preconnect_policy: policy } = cluster;
  const perHostRatio = valueOr(policy?.per_upstream_preconnect_ratio, 1);
  const predictiveRatio = predictive(cluster, `${at}.preconnect_policy`, faults);
  return perHostRatio === 1 && predictiveRatio === 1 ? {} : { preconnect: { perHostRatio, predictiveRatio } };
}

function predictive(cluster: BalancedCluster, at: string, faults: FaultSink): number {
  const ratio = valueOr(cluster.preconnect_policy?.predictive_preconnect_ratio, 1);
  const hasSubsets = (cluster.lb_subset_config?.subset_selectors.length ?? 0) > 0;
  if (ratio === 1 || (FORESEEABLE.has(lbPolicyName(cluster)) && !hasSubsets)) return ratio;
  const why = hasSubsets ? 'hosts are chosen by subset' : `no host is foreseen with ${lbPolicyName(cluster)}`;
  faults.warning(`${at}.predictive_preconnect_ratio`, `has no effect: ${why}`);
  return 1;
}
