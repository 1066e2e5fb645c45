// Which scopes there are when some have come and some are gone: no two have one key. Those that stay as they are come first, then those
// that have come, in their order; one whose key is taken leaves what it was before, if nobody has that key by now.

import { ScopeClaims } from '../../config/index.ts';
import type { ScopeSettings } from '../../snapshot/index.ts';

/** Those of before. */
export interface FormerScopes {
  names(): Iterable<string>;
  settingsOf(name: string): ScopeSettings | undefined;
  /** It is there, as it is. */
  has(settings: ScopeSettings): boolean;
}

export class ScopeChoice {
  /** By name, why those that have come are not taken. */
  readonly refusals = new Map<string, string>();
  readonly #former: FormerScopes;
  readonly #claims = new ScopeClaims();
  readonly #chosen: ScopeSettings[] = [];

  constructor(former: FormerScopes) {
    this.#former = former;
  }

  /** @param come with names of their own. @param gone names of those that are there no longer. Once. */
  choose(come: readonly ScopeSettings[], gone: ReadonlySet<string>): readonly ScopeSettings[] {
    const names = new Set(come.map(({ name }) => name));
    for (const name of this.#former.names()) {
      if (!gone.has(name) && !names.has(name)) this.#claim(this.#former.settingsOf(name)!);
    }
    for (const settings of come) if (this.#former.has(settings)) this.#claim(settings);
    const refused: string[] = [];
    for (const settings of come) {
      if (this.#former.has(settings)) continue;
      const complaint = this.#claim(settings);
      if (complaint === undefined) continue;
      this.refusals.set(settings.name, complaint);
      refused.push(settings.name);
    }
    for (const name of refused) {
      const former = this.#former.settingsOf(name);
      if (former !== undefined) this.#claim(former);
    }
    return this.#chosen;
  }

  #claim(settings: ScopeSettings): string | undefined {
    const complaint = this.#claims.claim(settings);
    if (complaint === undefined) this.#chosen.push(settings);
    return complaint;
  }
}
