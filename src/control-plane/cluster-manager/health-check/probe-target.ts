// Where the checks of a host go.

import type { HealthCheckSettings, HostSettings } from '../../../snapshot/index.ts';
import type { ProbeTarget } from './probe.ts';

export function probeTarget(
  { check, address }: Pick<HostSettings, 'check' | 'address'>,
  { port: clusterPort, probe }: HealthCheckSettings,
): ProbeTarget {
  const base = check?.address ?? address;
  const ownPort = check?.address?.kind === 'ip' ? check.address.port : 0;
  const port = ownPort || check?.port || clusterPort;
  const authority = check?.hostname || ('authority' in probe ? probe.authority : '');
  return { address: base.kind === 'pipe' || port === 0 ? base : { ...base, port }, authority };
}
