// GET /init_dump: what is not initialized yet, as an admin.v3.UnreadyTargetsDumps message.

import { createHash } from 'node:crypto';
import type { JsonObject } from '../../base/json.ts';
import { endpoint } from '../endpoint.ts';
import { text } from '../parameter.ts';
import { jsonBody } from '../render/json.ts';
import { jsonResponse } from '../response.ts';
import type { UnreadyView } from '../views/index.ts';

export const INIT_DUMP = endpoint({
  path: '/init_dump',
  help: 'What is not initialised yet',
  parameters: { mask: text('Show only this component: listener, cluster or server; any other waits for nothing') },
  handle({ init }, { mask }) {
    // There is no wrong component, only one that waits for nothing.
    const shown = [...init.unready()].filter(({ component }) => mask === undefined || component === mask);
    return jsonResponse(jsonBody(shown.length === 0 ? {} : { unready_targets_dumps: shown.map(dumpJson) }));
  },
});

function dumpJson(unready: UnreadyView): JsonObject {
  return {
    name: `init manager ${managerName(unready)}`,
    target_names: unready.targets.map((target) => `target ${target}`),
  };
}

function managerName({ component, name, message }: UnreadyView): string {
  if (component === 'server') return 'Server';
  const kind = component === 'listener' ? 'Listener-local-init-manager' : 'Cluster-init-manager';
  return `${kind} ${name} ${hashOf(message)}`;
}

/** 64 bits in decimal. */
function hashOf(message: Uint8Array): string {
  return createHash('sha256').update(message).digest().readBigUInt64BE().toString();
}
