// GET /help: all commands as text.

import { endpoint } from '../endpoint.ts';
import { helpText } from '../render/help-text.ts';
import { textResponse } from '../response.ts';

export const HELP = endpoint({
  path: '/help',
  help: 'This list of commands',
  handle: (_context, _parameters, { endpoints }) => textResponse(helpText(endpoints)),
});
