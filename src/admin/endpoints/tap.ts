// POST /tap: shows requests and responses as they pass.

import { endpoint } from '../endpoint.ts';

export const TAP = endpoint({
  path: '/tap',
  help: 'Show requests that match, as they pass; the body of the request says which',
  mutates: true,
});
