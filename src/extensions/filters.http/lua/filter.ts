// Stands where a script without a statement is configured, and costs requests nothing. Worker thread; step 3 of the request flow.

import type { HttpFilterKind } from '../../../data-plane/index.ts';

export const LUA_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  isAwake: () => false,
  compile: () => () => ({}),
};
