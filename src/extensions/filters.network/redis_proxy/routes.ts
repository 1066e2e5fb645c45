// Where keys go, by how they begin: the longest prefix counts.

import type { TerminalFilterContext } from '../../../data-plane/index.ts';
import type { RedisRoute, RedisSettings } from './settings.ts';

export interface RoutedKey {
  readonly route: RedisRoute;
  /** As the upstream sees it. */
  readonly key: Buffer;
  readonly mirrors: readonly Mirror[];
}

export interface Mirror {
  readonly cluster: string;
  /** Draws. */
  takes(isRead: boolean): boolean;
}

interface CompiledRoute {
  readonly route: RedisRoute;
  /** In lower case where case does not count. */
  readonly prefix: Buffer;
  readonly mirrors: readonly Mirror[];
}

export class RedisRoutes {
  readonly #routes: readonly CompiledRoute[];
  readonly #ignoresCase: boolean;

  constructor({ routes, ignoresCase }: RedisSettings, context: TerminalFilterContext) {
    this.#ignoresCase = ignoresCase;
    this.#routes = routes.map((route) => ({
      route,
      prefix: Buffer.from(route.prefix),
      mirrors: route.mirrors.map(({ cluster, share, leavesReads }) => {
        const draws = share === null ? () => true : context.share(share);
        return { cluster, takes: (isRead: boolean) => !(isRead && leavesReads) && draws() };
      }),
    }));
  }

  /** Null for a key that goes nowhere. */
  of(key: Buffer): RoutedKey | null {
    for (const { route, prefix, mirrors } of this.#routes) {
      if (!this.#begins(key, prefix)) continue;
      return { route, key: route.removesPrefix ? key.subarray(prefix.length) : key, mirrors };
    }
    return null;
  }

  #begins(key: Buffer, prefix: Buffer): boolean {
    if (key.length < prefix.length) return false;
    const head = key.subarray(0, prefix.length);
    return this.#ignoresCase
      ? head.toString('latin1').toLowerCase() === prefix.toString('latin1')
      : head.equals(prefix);
  }
}
