// ClusterLoadAssignment message → the members of a cluster that finds them by discovery, and what an assignment says of its cluster
// as a whole, wherever it stands.

import type { AssignmentPolicy, AssignmentSettings, EdsDiscoverySettings } from '../../snapshot/index.ts';
import { convertDrops } from './drop-overloads.ts';
import { convertLoadAssignment, StaticMembers } from './endpoint.ts';
import type { FaultSink } from './fault-sink.ts';
import type { ClusterLoadAssignment } from './messages.ts';
import { durationMsOr, valueOr } from './units.ts';

const DEFAULT_OVERPROVISIONING_FACTOR = 140;
/** With it one available host makes a priority or a locality a whole one, whatever it weighs among the others. */
const FACTOR_OF_ANY_HOST = 100 * 2 ** 32;

/** @param at path of the policy. */
export function convertAssignmentPolicy(
  policy: ClusterLoadAssignment['policy'],
  at: string,
  faults: FaultSink,
): AssignmentPolicy {
  return {
    overprovisioningFactor: policy?.disable_overprovisioning
      ? FACTOR_OF_ANY_HOST
      : valueOr(policy?.overprovisioning_factor, DEFAULT_OVERPROVISIONING_FACTOR),
    weightedPriorityHealth: policy?.weighted_priority_health ?? false,
    ...convertDrops(policy, at, faults),
  };
}

/** @param at path of the assignment. @param isLocal of the cluster that this proxy belongs to. */
export function convertDiscoveredAssignment(
  message: ClusterLoadAssignment,
  at: string,
  { subsetKeys, familyOrder }: EdsDiscoverySettings,
  isLocal: boolean,
  faults: FaultSink,
): AssignmentSettings {
  const members = new StaticMembers(familyOrder);
  convertLoadAssignment(message, at, new Set(subsetKeys), members, faults);
  if (isLocal) checkLocalPriorities(message, `${at}.endpoints`, faults);
  return {
    hosts: members.hosts,
    policy: convertAssignmentPolicy(message.policy, `${at}.policy`, faults),
    staleAfterMs: durationMsOr(message.policy?.endpoint_stale_after ?? null, 0),
  };
}

/** @param at path of the endpoints. */
export function checkLocalPriorities(message: ClusterLoadAssignment, at: string, faults: FaultSink): void {
  for (const [index, { priority }] of message.endpoints.entries()) {
    if (priority === 0) continue;
    faults.error(`${at}[${index}].priority`, `${priority} is not 0, the only priority of a local cluster`);
  }
}
