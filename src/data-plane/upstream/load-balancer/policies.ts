// The balancing policies by name.

import { WeirError } from '../../../base/errors.ts';
import type { Random } from '../../../base/random.ts';
import type { ClusterSnapshot } from '../../../snapshot/index.ts';
import type { Host } from '../host.ts';
import type { HostPicker } from './host-picker.ts';
import { LeastRequest } from './least-request.ts';
import { RandomPicker } from './random.ts';
import { RoundRobin } from './round-robin.ts';

/**
 * @param start where a picker in turn begins.
 * @param random drawn from with each pick by the policies that choose at random.
 * @throws WeirError WEIR_LB_POLICY for a policy that the configuration should have refused.
 */
export function createPicker(settings: ClusterSnapshot['settings'], start: number, random: Random): HostPicker<Host> {
  switch (settings.lbPolicy) {
    case 'ROUND_ROBIN':
      return new RoundRobin<Host>(start);
    case 'RANDOM':
      return new RandomPicker<Host>(random);
    case 'LEAST_REQUEST':
      return new LeastRequest<Host>(random, settings.leastRequest, (host) => host.activeRequests);
    default:
      throw new WeirError('WEIR_LB_POLICY', `cluster ${settings.name}: no balancer for ${settings.lbPolicy}`);
  }
}
