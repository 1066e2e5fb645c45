// UpstreamConnectionOptions.happy_eyeballs_config → in which order the addresses of one endpoint are tried.

import { ALTERNATING, type FamilyOrder, type IpFamily } from '../../base/address-families.ts';
import { UpstreamConnectionOptions_FirstAddressFamilyVersion as FirstFamily } from '../proto/generated/enums.ts';
import type { Cluster } from './messages.ts';
import { valueOr } from './units.ts';

const FAMILY_BY_VERSION: ReadonlyMap<number, IpFamily> = new Map([
  [FirstFamily.V4, 'v4'],
  [FirstFamily.V6, 'v6'],
]);

export function convertFamilyOrder({ upstream_connection_options: options }: Cluster): FamilyOrder {
  const config = options?.happy_eyeballs_config ?? null;
  if (config === null) return ALTERNATING;
  return {
    first: FAMILY_BY_VERSION.get(config.first_address_family_version),
    // 0 has broken a field rule.
    firstCount: Math.max(1, valueOr(config.first_address_family_count, ALTERNATING.firstCount)),
  };
}
