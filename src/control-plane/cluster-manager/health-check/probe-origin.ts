// Where the checks of a cluster's hosts come from: as its traffic does. Main thread.

import { proxyHeader } from '../../../base/proxy-header.ts';
import type { SystemCalls } from '../../../base/system-calls.ts';
import type { ClusterSettings } from '../../../snapshot/index.ts';
import type { ProbeOrigin } from './probe.ts';

/** @param systemCalls asked where sockets have options of their own. */
export function originOfProbes(
  { sourceAddress, sourcesByFamily, proxyHeader: header }: ClusterSettings,
  systemCalls: () => SystemCalls | undefined,
): ProbeOrigin {
  const begun = header === undefined ? {} : { preamble: proxyHeader(header, null) };
  if (sourcesByFamily === undefined) return { sourceAddress, systemCalls: undefined, ...begun };
  return { sourceAddress, sourcesByFamily, systemCalls: systemCalls(), ...begun };
}
