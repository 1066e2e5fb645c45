// Which DNS caches there are: several may go by one name where they agree in all they say.

import type { DnsCacheSettings } from '../../snapshot/index.ts';

interface Said {
  readonly text: string;
  readonly at: string;
}

/** What has been said of DNS caches so far, by their names. */
export class DnsCacheNames {
  readonly #known: Map<string, Said>;
  #comparisons = 0;

  constructor(known: ReadonlyMap<string, Said> = new Map()) {
    this.#known = new Map(known);
  }

  /** For what is said beside all this, and may be gone again. */
  copy(): DnsCacheNames {
    return new DnsCacheNames(this.#known);
  }

  /** How often something has been compared with what had been said before. */
  get comparisons(): number {
    return this.#comparisons;
  }

  /** @returns where something else has been said of this cache; undefined where nothing has. */
  differingAt(settings: DnsCacheSettings, at: string): string | undefined {
    this.#comparisons += 1;
    const text = JSON.stringify(settings);
    const known = this.#known.get(settings.name);
    if (known === undefined) this.#known.set(settings.name, { text, at });
    return known === undefined || known.text === text ? undefined : known.at;
  }
}
