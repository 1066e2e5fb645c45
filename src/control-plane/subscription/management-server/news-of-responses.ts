// Which resources of a response are other than in the one before: a server that tells the state of the world tells all of them for one
// that has changed. Keeps what has come last of each, bytes and all: to compare them costs a tenth of a digest. Main thread.

import type { RawResource } from '../../../config/index.ts';

export class NewsOfResponses {
  /** By name. */
  readonly #last = new Map<string, RawResource>();

  /** @returns whether it is other than it was, if it was. */
  note(resource: RawResource): boolean {
    const { name } = resource;
    const last = this.#last.get(name);
    // Nobody can say what else a text has said.
    if (resource.opened !== undefined) {
      if (last !== undefined) this.#last.delete(name);
      return true;
    }
    this.#last.set(name, resource);
    if (last === undefined || !isSame(last, resource)) return true;
    resource.digest = last.digest;
    return false;
  }

  /** There are no others any more. */
  keepOnly(resources: readonly RawResource[]): void {
    // Those of a type that says all there is are mostly the same ones.
    if (this.#last.size <= resources.length) return;
    const names = new Set(resources.map(({ name }) => name));
    for (const name of this.#last.keys()) if (!names.has(name)) this.#last.delete(name);
  }

  /** Whatever comes next of this name is new: nobody wants it any more, or has been told of what has come last. */
  forget(name: string): void {
    this.#last.delete(name);
  }
}

/** But for what says how long it lives. */
function isSame(a: RawResource, b: RawResource): boolean {
  if (a.typeUrl !== b.typeUrl || a.otherName !== b.otherName || a.version !== b.version) return false;
  if (a.aliases !== undefined || b.aliases !== undefined) return false;
  if (a.bytes === undefined || b.bytes === undefined || a.bytes.length !== b.bytes.length) return false;
  return Buffer.compare(a.bytes, b.bytes) === 0;
}
