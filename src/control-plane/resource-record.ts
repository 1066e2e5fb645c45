// What managers of resources (clusters, listeners) tell of each: the language that listings and acknowledgements speak.

export type ResourceState =
  /** It serves. */
  | 'active'
  /** It will serve when it is ready; until then what it replaces does. */
  | 'warming'
  /** It takes nothing new, and is waited for. */
  | 'draining'
  /** It could not be had; what it was to replace goes on. */
  | 'failed';

/** Of what is put without one: there is nothing to show of it. */
export const NO_MESSAGE: Uint8Array = new Uint8Array(0);

export interface ResourceRecord {
  readonly name: string;
  /** What it was made of, in its binary form. */
  readonly message: Uint8Array;
  /** False for those of the bootstrap. */
  readonly addedViaApi: boolean;
  /** Empty for those of the bootstrap. */
  readonly version: string;
  /** When it was put, in milliseconds since the Unix epoch. */
  readonly updatedMs: number;
  readonly state: ResourceState;
  /** Why it has failed; empty otherwise. */
  readonly error: string;
}

/** What a manager is told of a resource that may not be. */
export interface RefusedResource {
  readonly name: string;
  readonly message: Uint8Array;
  readonly error: string;
}

/** One resource of a manager by its name, with what a failure to have its successor has left. */
export class Failures {
  readonly #records = new Map<string, ResourceRecord>();

  note(record: Omit<ResourceRecord, 'state'>): void {
    this.#records.set(record.name, { ...record, state: 'failed' });
  }

  /** It has been put again, or removed. */
  forget(name: string): void {
    this.#records.delete(name);
  }

  values(): Iterable<ResourceRecord> {
    return this.#records.values();
  }
}
