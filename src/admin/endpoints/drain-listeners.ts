// POST /drain_listeners: has listeners stop.

import { endpoint } from '../endpoint.ts';
import { flag } from '../parameter.ts';
import { textResponse } from '../response.ts';

const KNOWN: ReadonlySet<string> = new Set(['graceful', 'skip_exit', 'inboundonly']);

export const DRAIN_LISTENERS = endpoint({
  path: '/drain_listeners',
  help: 'Stop the listeners',
  mutates: true,
  parameters: {
    graceful: flag('Drain for the time of --drain-time-s first'),
    skip_exit: flag('With graceful: go on accepting after the drain time'),
    inboundonly: flag('Only listeners of inbound traffic'),
  },
  handle({ commands }, { graceful, skip_exit, inboundonly }, { query }) {
    // A slip in a word would stop everything, and nothing starts it again.
    const unknown = query.pairs.find(([name]) => !KNOWN.has(name))?.[0];
    if (unknown !== undefined) {
      return textResponse(`unknown parameter ${JSON.stringify(unknown)}: there are ${[...KNOWN].join(', ')}\n`, 400);
    }
    if (skip_exit && !graceful) return textResponse('skip_exit requires graceful\n', 400);
    commands.drainListeners({ inboundOnly: inboundonly, isGraceful: graceful, keepsListeners: skip_exit });
    return textResponse('OK\n');
  },
});
