// DropOverload messages of a load assignment → the share of requests that is turned away before a host is chosen.

import type { Fraction } from '../../snapshot/index.ts';
import type { FaultSink } from './fault-sink.ts';
import type { ClusterLoadAssignment } from './messages.ts';
import { fractionOf } from './runtime-settings.ts';

type DropOverloads = NonNullable<ClusterLoadAssignment['policy']>['drop_overloads'];

/** @returns null where nothing is dropped. */
export function convertDropShare(messages: DropOverloads, at: string, faults: FaultSink): Fraction | null {
  if (messages.length > 1) faults.error(at, `one category can be dropped, ${messages.length} are given`);
  const percent = messages[0]?.drop_percentage;
  if (!percent) return null;
  const share = fractionOf(percent);
  if (share.numerator > share.denominator) {
    faults.error(`${at}[0].drop_percentage`, `${share.numerator} of ${share.denominator} is more than all requests`);
  }
  return share.numerator === 0 ? null : share;
}
