// What filters say of a request in dynamic metadata. Of most requests nobody reads it, so it is put together when somebody does.

import type { JsonObject } from '../../base/json.ts';
import type { Metadata } from '../../snapshot/index.ts';

export class SaidMetadata {
  readonly #namespace: string;
  readonly #values: JsonObject;
  readonly #before: SaidMetadata | null;
  /** How many sayings nobody has read, with this one. */
  readonly count: number;

  /** @param before what was said before this, and has not been read yet. */
  constructor(namespace: string, values: JsonObject, before: SaidMetadata | null) {
    this.#namespace = namespace;
    this.#values = values;
    this.#before = before;
    this.count = before === null ? 1 : before.count + 1;
  }

  /** Key by key beside what there is under its name; of one key what was said last counts. @param known stays as it is. */
  addedTo(known: Metadata | undefined): Metadata {
    const before = this.#before === null ? known : this.#before.addedTo(known);
    const namespace = this.#namespace;
    const values = before?.[namespace] === undefined ? this.#values : { ...before[namespace], ...this.#values };
    return before === undefined ? { [namespace]: values } : { ...before, [namespace]: values };
  }
}
