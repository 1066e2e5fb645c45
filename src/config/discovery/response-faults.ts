// Of what is wrong with a response that has been read whole: what of it concerns which resource.

import type { ConfigFault } from '../fault.ts';
import { parsePath } from '../source/field-path.ts';

export const RESPONSE_TYPE = 'proxy.service.discovery.v3.DiscoveryResponse';
export const RESOURCES = 'resources';

export interface AssignedFaults {
  readonly ofResponse: readonly ConfigFault[];
  readonly byResource: ReadonlyMap<number, ConfigFault[]>;
}

/** Of what was met in reading: whether it concerns one resource, or the response as a whole. */
export function assignFaults(faults: readonly ConfigFault[]): AssignedFaults {
  const ofResponse: ConfigFault[] = [];
  const byResource = new Map<number, ConfigFault[]>();
  for (const fault of faults) {
    const [field, index] = parsePath(fault.path);
    if (field !== RESOURCES || typeof index !== 'number') {
      ofResponse.push(fault);
      continue;
    }
    const own = byResource.get(index) ?? [];
    own.push(fault);
    byResource.set(index, own);
  }
  return { ofResponse, byResource };
}
