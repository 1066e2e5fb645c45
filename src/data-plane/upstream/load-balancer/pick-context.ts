// What a pick may know of its request.

import type { IpAddress } from '../../../base/address.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../base/json.ts';
import { comparable, keySetName, type MetadataPair, subsetKey } from '../../../base/subset-key.ts';
import type { Metadata, SubsetCriteria } from '../../../snapshot/index.ts';

/** Key of a list of criteria, of which the first that finds a host counts. */
const ALTERNATIVES = 'fallback_list';

/** What a request asks of its host's metadata. Made once per route. */
export class Criteria {
  /** Of the subset whose hosts say all of this. */
  readonly name: string;
  /** Of the keys alone. */
  readonly keySet: string;
  readonly keys: readonly string[];
  readonly #pairs: readonly MetadataPair[];
  /** With fewer keys, by the names of their sets. */
  readonly #reduced = new Map<string, Criteria | null>();
  #alternatives: readonly (Criteria | null)[] | null | undefined;

  /** @param pairs ascending by key, one or more. */
  constructor(pairs: readonly MetadataPair[]) {
    this.#pairs = pairs;
    this.name = subsetKey(pairs);
    this.keys = pairs.map(([key]) => key);
    this.keySet = keySetName(this.keys);
  }

  /** The same where this says nothing else, with all that it says beside. */
  with(values: JsonObject): Criteria {
    return new Criteria(mergedPairs(this.#pairs, values));
  }

  /** What is left of it with these keys alone; null for nothing. */
  reduce(keys: readonly string[]): Criteria | null {
    const name = keySetName(keys);
    const known = this.#reduced.get(name);
    if (known !== undefined) return known;
    const pairs = this.#pairs.filter(([key]) => keys.includes(key));
    const reduced = pairs.length === 0 ? null : new Criteria(pairs);
    this.#reduced.set(name, reduced);
    return reduced;
  }

  /** Where it names a list of what may be asked instead: each of them over the rest, null for nothing; else null. */
  get alternatives(): readonly (Criteria | null)[] | null {
    if (this.#alternatives === undefined) this.#alternatives = this.#readAlternatives();
    return this.#alternatives;
  }

  #readAlternatives(): readonly (Criteria | null)[] | null {
    const pair = this.#pairs.find(([key]) => key === ALTERNATIVES);
    const list: unknown = pair === undefined ? null : JSON.parse(pair[1]);
    // An empty list asks for nothing else than what is said without it.
    if (!Array.isArray(list)) return null;
    const rest = this.#pairs.filter(([key]) => key !== ALTERNATIVES);
    return (list.length === 0 ? [{}] : list).map((each: JsonValue) => {
      const pairs = mergedPairs(rest, isJsonObject(each) ? each : {});
      return pairs.length === 0 ? null : new Criteria(pairs);
    });
  }
}

export interface PickContext {
  /** False: balancers that go by hashes draw one. */
  readonly hasHash: boolean;
  /** Halves of the request's hash, each of 32 bits. */
  readonly hashHi: number;
  readonly hashLo: number;
  /** Null when it asks nothing. */
  readonly criteria: Criteria | null;
  /** The one host that it wants, in clusters where no balancer chooses; null where it has named none, and elsewhere. */
  readonly destination: IpAddress | null;
}

/** Hosts of one kind of one priority. */
export interface PickPlace {
  readonly priority: number;
  readonly isDegraded: boolean;
}

/** Of a request that may be picked for several times: what went before. */
export interface DrawContext {
  /** Hosts that were drawn for the attempt under way, and not taken. */
  readonly draw: number;
  /** Get nothing as long as there are others. Emptied when there are none. */
  readonly spentPriorities: Set<number>;
  /** Somebody else has chosen among the priorities; absent where shares do. */
  readonly place?: PickPlace;
}

/** Ascending by key. */
function mergedPairs(pairs: readonly MetadataPair[], values: JsonObject): readonly MetadataPair[] {
  const own = Object.entries(values).map(([key, value]): MetadataPair => [key, comparable(value)]);
  return [...new Map([...pairs, ...own])].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Namespaces of dynamic metadata that speak to balancers, the canonical one first. */
const BALANCER_NAMESPACES = ['proxy.lb', 'envoy.lb'] as const;

/**
 * @param said of a connection or a request; those that come later count where they say something else.
 * @returns what the route asks of hosts, with what filters have said of that.
 */
export function contextWith(
  context: PickContext | null,
  said: readonly (Metadata | null | undefined)[],
): PickContext | null {
  const values: Record<string, JsonValue> = {};
  for (const metadata of said) {
    const namespace = BALANCER_NAMESPACES.find((name) => metadata?.[name] !== undefined);
    if (namespace !== undefined) Object.assign(values, metadata![namespace]);
  }
  if (Object.keys(values).length === 0) return context;
  const criteria = context?.criteria ?? null;
  return contextOf(criteria === null ? new Criteria(mergedPairs([], values)) : criteria.with(values));
}

/** For requests that ask this of their hosts; null for those that ask nothing. */
export function contextAsking(criteria: SubsetCriteria | null): PickContext | null {
  return criteria === null ? null : contextOf(new Criteria(criteria));
}

/** A request of which nothing else is known. */
export function contextOf(criteria: Criteria | null): PickContext {
  return { hasHash: false, hashHi: 0, hashLo: 0, criteria, destination: null };
}

/** A request for this host. */
export function contextFor(destination: IpAddress): PickContext {
  return { hasHash: false, hashHi: 0, hashLo: 0, criteria: null, destination };
}

/** The hash of one request, while it is put together. */
export class RequestHash implements PickContext {
  readonly criteria: Criteria | null;
  readonly destination = null;
  hasHash = false;
  hashHi = 0;
  hashLo = 0;

  constructor(criteria: Criteria | null) {
    this.criteria = criteria;
  }

  /** Takes in one more hash: turns what was there by one bit, so that the order counts. */
  add(hi: number, lo: number): void {
    const turnedHi = (this.hashHi << 1) | (this.hashLo >>> 31);
    const turnedLo = (this.hashLo << 1) | (this.hashHi >>> 31);
    this.hashHi = (this.hasHash ? turnedHi : 0) ^ hi;
    this.hashLo = (this.hasHash ? turnedLo : 0) ^ lo;
    this.hasHash = true;
  }
}
