// Listeners that wait for what they need, routes, filters or secrets that come by discovery: one for each name, the last that was given.
// Main thread.

import type { Clock } from '../../base/clock.ts';
import type { ResourceRecord } from '../resource-record.ts';
import type { PutListener } from './active-listener.ts';
import type { ListenerNeeds } from './listener-needs.ts';

export interface WaitingListener {
  readonly given: PutListener;
  readonly needs: ListenerNeeds;
  readonly sinceMs: number;
}

export class WaitingListeners {
  readonly #clock: Clock;
  readonly #byName = new Map<string, WaitingListener>();
  readonly #onChanged: () => void;

  /** @param onChanged told when there are others, or none. */
  constructor(clock: Clock, onChanged: () => void) {
    this.#clock = clock;
    this.#onChanged = onChanged;
  }

  get count(): number {
    return this.#byName.size;
  }

  find(name: string): WaitingListener | undefined {
    return this.#byName.get(name);
  }

  /** In place of the one of its name that has waited. */
  add(given: PutListener, needs: ListenerNeeds): WaitingListener {
    const { name } = given.settings;
    const waiting = { given, needs, sinceMs: this.#clock.wallMs() };
    const former = this.#byName.get(name);
    this.#byName.set(name, waiting);
    former?.needs.release();
    this.#onChanged();
    return waiting;
  }

  /** @returns false when it is not waited for any more. */
  end(waiting: WaitingListener): boolean {
    const { name } = waiting.given.settings;
    if (this.#byName.get(name) !== waiting) return false;
    this.#byName.delete(name);
    this.#onChanged();
    return true;
  }

  /** Of those that discovery has brought. */
  *discoveredNames(): Iterable<string> {
    for (const [name, { given }] of this.#byName) if (given.addedViaApi) yield name;
  }

  dump(): ResourceRecord[] {
    return [...this.#byName.values()].map(({ given: { settings, ...given }, sinceMs: updatedMs }) => {
      return { ...given, name: settings.name, updatedMs, state: 'warming', error: '' };
    });
  }
}
