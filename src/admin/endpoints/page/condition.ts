// How well a cluster does, as the home page sorts it and warns of it: by its members, and by what became lately of all that was
// wanted of it. Requests that found no host count as failures here, though no host ever saw them.

import type { Cluster, Conditions } from '../../../page/data.ts';
import type { ClusterUseView, ReadPoints } from '../../views/index.ts';

/** Seconds over which rates are taken. The page shows means of as many. */
export const RECENT_POINTS = 10;

/** Series of HistoryView.clusters. */
const RQ = 0;
const RQ_5XX = 1;
const CX = 5;
const CX_FAILED = 6;

/** From this share of 5xx on a cluster fails, rather than that somebody has asked for something odd. */
const FAILING_SHARE = 0.01;

/** The worst first: rows and warnings come in this order. */
export const CONDITIONS: Conditions = ['down', 'failing', 'impaired', 'well', 'idle'];

export type Judgement = Pick<Cluster, 'condition' | 'reason'>;

/** @param recent points of the last seconds; undefined when nothing was wanted of the cluster. */
export function judge(use: ClusterUseView, recent: ReturnType<ReadPoints> | undefined): Judgement {
  const { members, membersHealthy: healthy, membersDegraded: degraded } = use;
  const rate = (series: number): number => meanOf(recent?.[series] ?? []);
  const [answers, errors, opened, unreached] = [rate(RQ), rate(RQ_5XX), rate(CX), rate(CX_FAILED)];
  if (members > 0 && healthy + degraded === 0) return { condition: 'down', reason: `no healthy host of ${members}` };
  if (answers > 0 && errors >= answers) {
    return { condition: 'down', reason: members === 0 ? 'it has no host' : 'all answers are 5xx' };
  }
  if (answers === 0 && unreached > 0 && opened <= unreached) {
    return { condition: 'down', reason: members === 0 ? 'it has no host' : 'no connection can be opened' };
  }
  const share = answers === 0 ? 0 : errors / answers;
  if (share >= FAILING_SHARE)
    return { condition: 'failing', reason: `${(100 * share).toFixed(1)} % of answers are 5xx` };
  if (healthy < members) return { condition: 'impaired', reason: lacking(use) };
  if (unreached > 0) return { condition: 'impaired', reason: 'some connections cannot be opened' };
  const isIdle = answers === 0 && opened === 0 && use.activeRequests === 0 && use.activeConnections === 0;
  return { condition: isIdle ? 'idle' : 'well', reason: '' };
}

function lacking({ members, membersHealthy: healthy, membersDegraded: degraded }: ClusterUseView): string {
  const unhealthy = members - healthy - degraded;
  const parts = [unhealthy > 0 && `${unhealthy} unhealthy`, degraded > 0 && `${degraded} degraded`];
  return `${parts.filter((part) => part !== false).join(' and ')} of ${members} hosts`;
}

/** Of the values that are known; 0 without any. */
function meanOf(values: ArrayLike<number>): number {
  let [sum, count] = [0, 0];
  for (let at = 0; at < values.length; at++) {
    const value = values[at]!;
    if (Number.isNaN(value)) continue;
    sum += value;
    count += 1;
  }
  return count === 0 ? 0 : sum / count;
}
