// Address → core.Address message.

import type { Address } from '../../base/address.ts';
import type { JsonObject } from '../../base/json.ts';

export function addressMessage(address: Address): JsonObject {
  if (address.kind === 'ip') return { socket_address: { address: address.ip, port_value: address.port } };
  return { pipe: { path: address.path, ...(address.mode === 0 ? {} : { mode: address.mode }) } };
}
