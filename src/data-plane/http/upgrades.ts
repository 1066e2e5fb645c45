// Requests that want their connection to become something else: Upgrade (RFC 9110 section 7.8) and CONNECT (9.3.6).
// Which of them a connection manager admits, and what is special about their heads.

import type { UpgradeSettings } from '../../snapshot/index.ts';
import { Framing, HEADER_ID, HeadFlag, type MessageHead, Method, type RequestHead } from '../../wasm/http1.ts';
import type { Route } from '../route/route.ts';
import type { FilterChain } from './filter-chain.ts';

const CONNECT = 'connect';
/** No server has to take this offer, and this one speaks HTTP/1.1 with its clients. */
const HTTP2 = 'h2c';

/** What the request wants the connection to become, in lower case; empty when it stays as it is. */
export function upgradeType(head: RequestHead): string {
  if (head.methodId === Method.CONNECT) return CONNECT;
  // HTTP/1.0 has no Upgrade: a server must ignore it, and always may (RFC 9110 section 7.8). Behind chunks, with or
  // without trailers, nobody upgrades.
  if ((head.flags & HeadFlag.UPGRADE) === 0 || head.minorVersion === 0) return '';
  if (head.framing === Framing.CHUNKED) return '';
  const type = head.header(HEADER_ID.upgrade)!.toLowerCase();
  return type === HTTP2 ? '' : type;
}

/** Lets the fields of an upgrade pass, which otherwise end at this hop. Not twice, if it is called twice. */
export function keepUpgradeFields(head: MessageHead): void {
  const first = head.indexOf(HEADER_ID.upgrade);
  if (first < 0 || !head.isDropped(first)) return;
  head.keepKnown(HEADER_ID.upgrade);
  head.append('connection', 'upgrade');
}

interface AdmittedUpgrade {
  readonly isEnabled: boolean;
  readonly filters: FilterChain | null;
}

export class Upgrades {
  /** What upgrades meet for which the connection manager has nothing of its own. */
  readonly #filters: FilterChain | null;
  readonly #types = new Map<string, AdmittedUpgrade>();

  /** @param compile makes the chain of an upgrade that has its own. */
  constructor(
    settings: readonly UpgradeSettings[],
    filters: FilterChain | null,
    compile: (filters: NonNullable<UpgradeSettings['httpFilters']>) => FilterChain | null,
  ) {
    this.#filters = filters;
    for (const { type, isEnabled, httpFilters } of settings) {
      this.#types.set(type, { isEnabled, filters: httpFilters === null ? filters : compile(httpFilters) });
    }
  }

  /**
   * @param type in lower case. @param route undefined when none matches.
   * @returns what the request meets before the router, null for nothing; undefined when it is refused.
   */
  admit(type: string, head: RequestHead, route: Route | undefined): FilterChain | null | undefined {
    const upgrade = this.#types.get(type);
    const byRoute = route?.plan.kind === 'cluster' ? route.plan.upgrades?.get(type) : undefined;
    if (!(byRoute ?? upgrade?.isEnabled ?? false)) return undefined;
    const filters = upgrade === undefined ? this.#filters : upgrade.filters;
    // A body and a tunnel behind it, which an edit of the body would run together.
    if (head.framing !== Framing.NONE && filters?.requestUses.includes('edits')) return undefined;
    return filters;
  }
}
