// POST /quitquitquit: ends the server.

import { endpoint } from '../endpoint.ts';
import { textResponse } from '../response.ts';

export const QUIT = endpoint({
  path: '/quitquitquit',
  help: 'End the server cleanly',
  mutates: true,
  handle: ({ commands }) => ({ ...textResponse('OK\n'), afterSent: () => commands.quit() }),
});
