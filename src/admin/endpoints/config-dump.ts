// GET /config_dump: the configuration in use.

import { endpoint } from '../endpoint.ts';
import { flag, text } from '../parameter.ts';

export const CONFIG_DUMP = endpoint({
  path: '/config_dump',
  help: 'Configuration in use, secrets left out',
  parameters: {
    resource: text('Show only this repeated field of a dump'),
    mask: text('Show only these fields, comma separated'),
    name_regex: text('Show only resources whose whole name matches (RE2 syntax)'),
    include_eds: flag('Show endpoints too'),
  },
});
