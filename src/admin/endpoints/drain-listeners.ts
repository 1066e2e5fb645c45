// POST /drain_listeners: has listeners stop.

import { endpoint } from '../endpoint.ts';
import { flag } from '../parameter.ts';

export const DRAIN_LISTENERS = endpoint({
  path: '/drain_listeners',
  help: 'Stop the listeners',
  mutates: true,
  parameters: {
    graceful: flag('Drain for the time of --drain-time-s first'),
    inboundonly: flag('Only listeners of inbound traffic'),
  },
});
