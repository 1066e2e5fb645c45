// What a server of Redis says of its cluster: the answer to CLUSTER SLOTS, an array of ranges, each with its primary and then its
// replicas. Main thread.

import { isIP } from 'node:net';
import { formatAddress } from '../../../base/address.ts';
import { REDIS_SLOTS, type RedisRole, type SlotRange } from '../../../base/redis-slots.ts';
import { arrayItems, integerOf, lineOf, RespError, stringOf } from '../../../base/resp.ts';

export interface RedisServer {
  readonly ip: string;
  /** By which others call it; empty where they do so by its address. */
  readonly name: string;
  readonly port: number;
  readonly role: RedisRole;
}

/** Of one cluster; the specification knows of 1000 servers at most. */
const MAX_SERVERS = 4096;
const MAX_PORT = 65_535;
const HOST_NAME = /^[\w.-]{1,253}$/;
const NO_NAMES: ReadonlyMap<string, string> = new Map();

/**
 * @param message whole. @returns the names that servers have in it in place of addresses, each once.
 * @throws RespError for what is no list of ranges, and for too many of them.
 */
export function namesIn(message: Buffer): string[] {
  const nodes = rangesOf(message).flatMap((range) => (arrayItems(range) ?? []).slice(2));
  const hosts = nodes.map((node) => (arrayItems(node) ?? [])[0]).map((host) => (host && stringOf(host)) ?? '');
  const names = new Set(hosts.filter((host) => HOST_NAME.test(host) && isIP(host) === 0));
  if (names.size > MAX_SERVERS) throw new RespError(`more than ${MAX_SERVERS} servers`);
  return [...names];
}

/**
 * @param message whole. @param asked address of who says it, for servers that do not know their own.
 * @param addresses of names; replicas whose name has none are left out.
 * @returns each server once. @throws RespError for what is no such answer, or where the name of a primary has no address.
 */
export function readClusterSlots(
  message: Buffer,
  asked: string,
  addresses: ReadonlyMap<string, string> = NO_NAMES,
): RedisServer[] {
  const ranges = rangesOf(message);
  const primaries = new Map<string, { readonly place: Place; readonly slots: SlotRange[] }>();
  const replicas = new Map<string, { readonly place: Place; readonly of: string }>();
  for (const range of ranges) {
    const [first, last, ...nodes] = arrayItems(range) ?? [];
    const slots = rangeOf(first, last);
    const [primary, ...others] = nodes.map((node) => placeOf(node, asked, addresses));
    if (primary === undefined) throw new RespError('a range of slots without a server');
    if (primary.ip === '') throw new RespError(`names ${JSON.stringify(primary.name)}, which has no address`);
    const key = keyOf(primary);
    const known = primaries.get(key) ?? { place: primary, slots: [] };
    known.slots.push(slots);
    primaries.set(key, known);
    for (const place of others) if (place.ip !== '') replicas.set(keyOf(place), { place, of: key });
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

function rangesOf(message: Buffer): readonly Buffer[] {
  const ranges = arrayItems(message);
  if (ranges === null) throw new RespError(`answered ${JSON.stringify(lineOf(message).slice(0, 100))}`);
  return ranges;
}

/** Without `ip` its name has no address. */
type Place = Pick<RedisServer, 'ip' | 'port' | 'name'>;

function keyOf({ ip, port }: Pick<Place, 'ip' | 'port'>): string {
  return formatAddress({ kind: 'ip', ip, port });
}

function rangeOf(first: Buffer | undefined, last: Buffer | undefined): SlotRange {
  const [from, to] = [first && integerOf(first), last && integerOf(last)];
  const isRange = from !== undefined && to !== undefined && from >= 0 && from <= to && to < REDIS_SLOTS;
  if (!isRange) throw new RespError('a range of slots that is none');
  return [from, to];
}

function placeOf(node: Buffer, asked: string, addresses: ReadonlyMap<string, string>): Place {
  const [host, number] = arrayItems(node) ?? [];
  const called = host === undefined ? undefined : stringOf(host);
  const port = number === undefined ? undefined : integerOf(number);
  if (called === undefined || port === undefined || port < 1 || port > MAX_PORT)
    throw new RespError('a server without address');
  // Nothing stands for who says it; `?` for a server that does not know how it is called.
  if (called === '' || called === '?') return { ip: asked, name: '', port };
  return isIP(called) === 0 ? { ip: addresses.get(called) ?? '', name: called, port } : { ip: called, name: '', port };
}
