// GET /listeners: names and bound addresses, as text or JSON.

import { formatAddress } from '../../base/address.ts';
import type { JsonObject } from '../../base/json.ts';
import {
  type AdminContext,
  type AdminResponse,
  type EndpointParameter,
  jsonResponse,
  textResponse,
} from '../endpoint.ts';
import type { AdminQuery } from '../query.ts';
import { addressJson } from '../render/address-json.ts';
import { jsonBody } from '../render/json.ts';
import type { ListenerView } from '../views.ts';

export const LISTENERS_PARAMETERS: readonly EndpointParameter[] = [
  { id: 'format', kind: 'choice', choices: ['text', 'json'], help: 'Format of the output' },
];

export function handleListeners({ listeners }: AdminContext, query: AdminQuery): AdminResponse {
  const all = [...listeners.listeners()];
  if (query.value('format') === 'json') return jsonResponse(jsonBody(listenersJson(all)));
  return textResponse(all.map(listenerText).join(''));
}

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
    ...(first === undefined ? {} : { local_address: addressJson(first) }),
    ...(more.length === 0 ? {} : { additional_local_addresses: more.map(addressJson) }),
  };
}
