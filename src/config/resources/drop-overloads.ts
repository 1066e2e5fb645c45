// What a load assignment says of overload → the share of requests that is turned away before a host is chosen.

import type { AssignmentPolicy, Fraction } from '../../snapshot/index.ts';
import type { FaultSink } from './fault-sink.ts';
import type { ClusterLoadAssignment } from './messages.ts';
import { fractionOf } from './runtime-settings.ts';

type Policy = NonNullable<ClusterLoadAssignment['policy']>;

const MILLION = 1_000_000;

/** The share is null where nothing is dropped; the early form has no category. */
export function convertDrops(
  policy: Policy | null,
  at: string,
  faults: FaultSink,
): Pick<AssignmentPolicy, 'dropShare' | 'dropCategory'> {
  const dropShare = convertDropShare(policy, at, faults);
  const [category] = policy?.drop_overloads ?? [];
  return { dropShare, ...(dropShare !== null && category !== undefined && { dropCategory: category.category }) };
}

function convertDropShare(policy: Policy | null, at: string, faults: FaultSink): Fraction | null {
  if (policy === null) return null;
  if (policy.drop_overloads.length === 0) return shareOfPercent(policy.drop_overload, `${at}.drop_overload`, faults);
  if (policy.drop_overload !== 0) {
    faults.warning(`${at}.drop_overload`, 'ignored, because drop_overloads supersedes it');
  }
  return shareOfCategory(policy.drop_overloads, `${at}.drop_overloads`, faults);
}

function shareOfCategory(messages: Policy['drop_overloads'], at: string, faults: FaultSink): Fraction | null {
  if (messages.length > 1) faults.error(at, `one category can be dropped, ${messages.length} are given`);
  const percent = messages[0]?.drop_percentage;
  if (!percent) return null;
  const share = fractionOf(percent);
  if (share.numerator > share.denominator) {
    faults.error(`${at}[0].drop_percentage`, `${share.numerator} of ${share.denominator} is more than all requests`);
  }
  return share.numerator === 0 ? null : share;
}

/** The early form, which has no category. */
function shareOfPercent(percent: number, at: string, faults: FaultSink): Fraction | null {
  if (!(percent >= 0 && percent <= 100)) {
    faults.error(at, `${percent} is no percentage of requests`);
    return null;
  }
  const numerator = Math.round(percent * (MILLION / 100));
  return numerator === 0 ? null : { numerator, denominator: MILLION };
}
