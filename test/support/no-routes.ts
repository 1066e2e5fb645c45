// Of listeners whose routes stand in their configurations: nobody asks for tables.

import type { RouteLeases } from '../../src/control-plane/routes/route-tables.ts';

export const NO_ROUTES_LEASED: RouteLeases = {
  lease: ({ name }) => {
    throw new Error(`nobody was to ask for routes ${name}`);
  },
  leaseScopes: ({ name }) => {
    throw new Error(`nobody was to ask for the scopes of ${name}`);
  },
};
