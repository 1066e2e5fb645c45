// What a response of discovery offers, read to its end.

import type { DiscoveredResource, DiscoveredResponse } from '../../src/config/index.ts';

export function readAll<Resource>(response: DiscoveredResponse<Resource>): readonly DiscoveredResource<Resource>[] {
  return [...response.offered()].map((offered) => offered.read());
}
