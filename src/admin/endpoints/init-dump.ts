// GET /init_dump: what the start still waits for.

import { endpoint } from '../endpoint.ts';
import { text } from '../parameter.ts';

export const INIT_DUMP = endpoint({
  path: '/init_dump',
  help: 'What is not initialised yet',
  parameters: { mask: text('Show only this component') },
});
