// Which requests that want their connection to become something else a connection manager admits.

import { compileByteMatch, type StringTest } from '../../base/string-match.ts';
import type { StringMatch, UpgradeSettings } from '../../snapshot/index.ts';
import { Framing, HEADER_ID, Method, type RequestHead } from '../../wasm/http1.ts';
import type { Route } from '../route/route.ts';
import type { ChainSlot } from './chain-slot.ts';
import type { FilterChain } from './filter-chain.ts';
import { upgradeType } from './upgrade-fields.ts';

interface AdmittedUpgrade {
  readonly isEnabled: boolean;
  readonly filters: ChainSlot;
}

export class Upgrades {
  /** What upgrades meet for which the connection manager has nothing of its own. */
  readonly #filters: ChainSlot;
  readonly #types = new Map<string, AdmittedUpgrade>();

  readonly #ignored: readonly StringTest[];

  /**
   * @param ignored those that requests of HTTP/1.1 ask for in vain.
   * @param open makes the chain of an upgrade that has its own.
   */
  constructor(
    settings: readonly UpgradeSettings[],
    ignored: readonly StringMatch[],
    filters: ChainSlot,
    open: (filters: NonNullable<UpgradeSettings['httpFilters']>) => ChainSlot,
  ) {
    this.#filters = filters;
    this.#ignored = ignored.map(compileByteMatch);
    for (const { type, isEnabled, httpFilters } of settings) {
      this.#types.set(type, { isEnabled, filters: httpFilters === null ? filters : open(httpFilters) });
    }
  }

  /** As upgradeType, but for what is ignored. @param protocol of the request. */
  typeOf(head: RequestHead, protocol: string): string {
    const type = upgradeType(head);
    const isAnswered = this.#ignored.length === 0 || type === '' || head.methodId === Method.CONNECT;
    // Over HTTP/2 nobody asks for one by the way.
    if (isAnswered || protocol !== 'HTTP/1.1') return type;
    const names = head.header(HEADER_ID.upgrade)!.split(',');
    return names.every((name) => this.#ignored.some((test) => test(name.trim()))) ? '' : type;
  }

  /**
   * @param type in lower case. @param route undefined when none matches.
   * @returns what the request meets before the router, null for nothing; undefined when it is refused.
   */
  admit(type: string, head: RequestHead, route: Route | undefined): FilterChain | null | undefined {
    const upgrade = this.#types.get(type);
    const byRoute = route?.plan.kind === 'cluster' ? route.plan.upgrades?.get(type) : undefined;
    if (!(byRoute ?? upgrade?.isEnabled ?? false)) return undefined;
    const filters = (upgrade === undefined ? this.#filters : upgrade.filters).current;
    // A body and a tunnel behind it, which an edit of the body would run together.
    if (head.framing !== Framing.NONE && filters?.requestUses.isEdited) return undefined;
    return filters;
  }
}
