// GET /ready: the state of the server, also as a status.

import { endpoint } from '../endpoint.ts';
import { textResponse } from '../response.ts';

export const READY = endpoint({
  path: '/ready',
  help: 'State of the server; 200 when it is LIVE, otherwise 503',
  handle({ server }) {
    const state = server.state();
    return textResponse(`${state}\n`, state === 'LIVE' ? 200 : 503);
  },
});
