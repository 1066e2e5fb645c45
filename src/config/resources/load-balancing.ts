// What the balancers of a cluster read: options of the policies, panic threshold, overprovisioning.

import type { ClusterSettings, LeastRequestSettings } from '../../snapshot/index.ts';
import type { Cluster } from './messages.ts';
import { valueOr } from './units.ts';

const DEFAULT_CHOICE_COUNT = 2;
const DEFAULT_PANIC_THRESHOLD = 50;
const DEFAULT_OVERPROVISIONING_FACTOR = 140;

export type LoadBalancingSettings = Pick<
  ClusterSettings,
  | 'leastRequest'
  | 'healthyPanicThreshold'
  | 'overprovisioningFactor'
  | 'weightedPriorityHealth'
  | 'closeConnectionsOnHostSetChange'
>;

export function convertLoadBalancing(message: Cluster): LoadBalancingSettings {
  const common = message.common_lb_config;
  const policy = message.load_assignment?.policy;
  return {
    leastRequest: convertLeastRequest(message.least_request_lb_config),
    healthyPanicThreshold: Math.trunc(valueOr(common?.healthy_panic_threshold, DEFAULT_PANIC_THRESHOLD)),
    overprovisioningFactor: valueOr(policy?.overprovisioning_factor, DEFAULT_OVERPROVISIONING_FACTOR),
    weightedPriorityHealth: policy?.weighted_priority_health ?? false,
    closeConnectionsOnHostSetChange: common?.close_connections_on_host_set_change ?? false,
  };
}

function convertLeastRequest(config: Cluster['least_request_lb_config']): LeastRequestSettings {
  return {
    choiceCount: valueOr(config?.choice_count, DEFAULT_CHOICE_COUNT),
    activeRequestBias: config?.active_request_bias?.default_value,
  };
}
