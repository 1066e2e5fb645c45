// GET /listeners: names and bound addresses, as text or JSON.

import { formatAddress } from '../../base/address.ts';
import type { JsonObject } from '../../base/json.ts';
import { addressMessage } from '../../config/index.ts';
import { endpoint } from '../endpoint.ts';
import { choice } from '../parameter.ts';
import { jsonBody } from '../render/json.ts';
import { jsonResponse, textResponse } from '../response.ts';
import type { ListenerView } from '../views/index.ts';

export const LISTENERS = endpoint({
  path: '/listeners',
  help: 'Names and addresses of the listeners; those that were stopped stay',
  parameters: { format: choice({ help: 'Format of the output; any other word means text', values: ['text', 'json'] }) },
  handle({ listeners }, { format }) {
    const all = [...listeners.listeners()];
    return format === 'json'
      ? jsonResponse(jsonBody(listenersJson(all)))
      : textResponse(all.map(listenerText).join(''));
  },
});

function listenerText({ name, addresses }: ListenerView): string {
  return addresses.map((address) => `${name}::${formatAddress(address)}\n`).join('');
}

/** Fields at their default are left out. */
function listenersJson(listeners: readonly ListenerView[]): JsonObject {
  if (listeners.length === 0) return {};
  return { listener_statuses: listeners.map(listenerStatus) };
}

function listenerStatus({ name, addresses }: ListenerView): JsonObject {
  const [first, ...more] = addresses;
  return {
    ...(name === '' ? {} : { name }),
    ...(first === undefined ? {} : { local_address: addressMessage(first) }),
    ...(more.length === 0 ? {} : { additional_local_addresses: more.map(addressMessage) }),
  };
}
