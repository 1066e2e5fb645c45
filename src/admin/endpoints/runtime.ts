// GET /runtime and POST /runtime_modify: runtime values, by layer.

import { endpoint } from '../endpoint.ts';
import { pairs } from '../parameter.ts';

export const RUNTIME = endpoint({ path: '/runtime', help: 'Runtime values, by layer' });

export const RUNTIME_MODIFY = endpoint({
  path: '/runtime_modify',
  help: 'Change runtime values in the admin layer',
  mutates: true,
  parameters: { values: pairs('<key>', 'Value of a key; an empty one removes what was set here before') },
});
