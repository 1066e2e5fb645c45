// Which scopes lead to which route tables, for the connection managers of a worker that choose among several. A set is what main has told
// of one id; whoever refers to it sees what changes.

import type { Demand, PublishedScopes } from '../../snapshot/index.ts';
import type { RouteRequest } from './route-request.ts';
import type { RouteSlot } from './route-tables.ts';
import type { RoutesInUse } from './routes-in-use.ts';
import { type ScopeKeyBuilder, scopeKeyText } from './scope-key.ts';

/** A scope whose table nobody has asked for yet. */
interface AbsentTable {
  readonly current: null;
  readonly demand: Demand;
}

/** Slots by keys with one number of parts. */
type SlotsByKey = Map<string, RouteSlot | AbsentTable>;

/** Where tables lie by their ids; RouteTables has them. */
export interface RoutedTables {
  slot(id: number): RouteSlot;
}

class ScopeSet {
  /** By how many parts keys have. */
  readonly #byLength = new Map<number, SlotsByKey>();

  slots(keyLength: number): SlotsByKey {
    let slots = this.#byLength.get(keyLength);
    if (slots === undefined) {
      slots = new Map();
      this.#byLength.set(keyLength, slots);
    }
    return slots;
  }
}

export class ScopeSets {
  readonly #tables: RoutedTables;
  readonly #sets = new Map<number, ScopeSet>();

  constructor(tables: RoutedTables) {
    this.#tables = tables;
  }

  /** Empty until something has been told of this id. @param nobody by which requests go that belong to no scope. */
  scopes(id: number, keys: ScopeKeyBuilder, nobody: RouteSlot): RouteScopes {
    return new RouteScopes(keys, this.#set(id).slots(keys.length), nobody);
  }

  update({ id, put, removed }: PublishedScopes): void {
    const set = this.#set(id);
    for (const key of removed) set.slots(key.length).delete(scopeKeyText(key));
    for (const { key, routeTableId } of put) {
      const slot =
        routeTableId === null
          ? { current: null, demand: { kind: 'scope', scopeSetId: id, key } as const }
          : this.#tables.slot(routeTableId);
      set.slots(key.length).set(scopeKeyText(key), slot);
    }
  }

  /** No listener refers to it any more. */
  remove(id: number): void {
    this.#sets.delete(id);
  }

  #set(id: number): ScopeSet {
    let set = this.#sets.get(id);
    if (set === undefined) {
      set = new ScopeSet();
      this.#sets.set(id, set);
    }
    return set;
  }
}

/** The scopes of a connection manager, by the keys of its requests. */
export class RouteScopes {
  readonly #keys: ScopeKeyBuilder;
  readonly #slots: ReadonlyMap<string, RouteSlot | AbsentTable>;
  readonly #nobody: RouteSlot;

  constructor(keys: ScopeKeyBuilder, slots: ReadonlyMap<string, RouteSlot | AbsentTable>, nobody: RouteSlot) {
    this.#keys = keys;
    this.#slots = slots;
    this.#nobody = nobody;
  }

  /** What a request goes by that begins now: a table without routes, where it belongs to no scope. */
  routesOf(request: RouteRequest): RoutesInUse {
    return this.#slotOf(request)?.current ?? this.#nobody.current;
  }

  /** What a request waits for whose scope has a table that nobody has asked for yet; undefined for any other. */
  missing(request: RouteRequest): Demand | undefined {
    const slot = this.#slotOf(request);
    return slot?.current === null ? slot.demand : undefined;
  }

  #slotOf(request: RouteRequest): RouteSlot | AbsentTable | undefined {
    const key = this.#keys.keyOf(request);
    return key === undefined ? undefined : this.#slots.get(key);
  }
}
