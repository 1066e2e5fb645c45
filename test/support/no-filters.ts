// Of listeners whose filters stand in their configurations: nobody asks for them.

import type { FilterLeases } from '../../src/control-plane/filters/filter-leases.ts';

function refuse(name: string): never {
  throw new Error(`nobody was to ask for a filter ${name}`);
}

export const NO_FILTERS_LEASED: FilterLeases = {
  lease: refuse,
  leaseNetwork: refuse,
  leaseTerminal: refuse,
  leaseListener: refuse,
};
