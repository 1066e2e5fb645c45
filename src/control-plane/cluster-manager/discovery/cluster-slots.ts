// What a server of Redis says of its cluster: the answer to CLUSTER SLOTS, an array of ranges, each with its primary and then its
// replicas. Main thread.

import { isIP } from 'node:net';
import { formatAddress } from '../../../base/address.ts';
import { REDIS_SLOTS, type RedisRole, type SlotRange } from '../../../base/redis-slots.ts';
import { arrayItems, integerOf, lineOf, RespError, stringOf } from '../../../base/resp.ts';

export interface RedisServer {
  readonly ip: string;
  readonly port: number;
  readonly role: RedisRole;
}

/** Of one cluster; the specification knows of 1000 servers at most. */
const MAX_SERVERS = 4096;
const MAX_PORT = 65_535;

/**
 * @param message whole. @param asked address of who says it, for servers that do not know their own.
 * @returns each server once. @throws RespError for what is no such answer, or names servers otherwise than by IP address.
 */
export function readClusterSlots(message: Buffer, asked: string): RedisServer[] {
  const ranges = arrayItems(message);
  if (ranges === null) throw new RespError(`answered ${JSON.stringify(lineOf(message).slice(0, 100))}`);
  const primaries = new Map<string, { readonly place: Place; readonly slots: SlotRange[] }>();
  const replicas = new Map<string, { readonly place: Place; readonly of: string }>();
  for (const range of ranges) {
    const [first, last, ...nodes] = arrayItems(range) ?? [];
    const slots = rangeOf(first, last);
    const [primary, ...others] = nodes.map((node) => placeOf(node, asked));
    if (primary === undefined) throw new RespError('a range of slots without a server');
    const key = keyOf(primary);
    const known = primaries.get(key) ?? { place: primary, slots: [] };
    known.slots.push(slots);
    primaries.set(key, known);
    for (const place of others) replicas.set(keyOf(place), { place, of: key });
    if (primaries.size + replicas.size > MAX_SERVERS) throw new RespError(`more than ${MAX_SERVERS} servers`);
  }
  const servers: RedisServer[] = [...primaries.values()].map(({ place, slots }) => ({
    ...place,
    role: { kind: 'primary', slots: slots.sort(([a], [b]) => a - b) },
  }));
  for (const [key, { place, of }] of replicas) {
    if (!primaries.has(key)) servers.push({ ...place, role: { kind: 'replica', of } });
  }
  return servers;
}

type Place = Pick<RedisServer, 'ip' | 'port'>;

function keyOf({ ip, port }: Place): string {
  return formatAddress({ kind: 'ip', ip, port });
}

function rangeOf(first: Buffer | undefined, last: Buffer | undefined): SlotRange {
  const [from, to] = [first && integerOf(first), last && integerOf(last)];
  const isRange = from !== undefined && to !== undefined && from >= 0 && from <= to && to < REDIS_SLOTS;
  if (!isRange) throw new RespError('a range of slots that is none');
  return [from, to];
}

function placeOf(node: Buffer, asked: string): Place {
  const [host, number] = arrayItems(node) ?? [];
  const name = host === undefined ? undefined : stringOf(host);
  const port = number === undefined ? undefined : integerOf(number);
  if (name === undefined || port === undefined || port < 1 || port > MAX_PORT)
    throw new RespError('a server without address');
  // Nothing stands for who says it; `?` for a server that does not know how it is called.
  const ip = name === '' || name === '?' ? asked : name;
  if (isIP(ip) === 0) throw new RespError(`names ${JSON.stringify(ip)}: cluster-preferred-endpoint-type has to be ip`);
  return { ip, port };
}
