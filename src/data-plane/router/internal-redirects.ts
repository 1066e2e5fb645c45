// The redirects of one request that the proxy follows itself: how many there were and where they led, and the body that goes
// along. Made for requests whose route has a policy for them; what comes of it is up to the policies of the routes on the
// way. One request of a client stays one request, with one entry in the logs (docs/decisions/0025).

import type { InternalRedirectSettings, RedirectPredicate } from '../../snapshot/index.ts';
import { ReplayBuffer } from './replay-buffer.ts';

const NO_BYTES = Buffer.alloc(0);

export class InternalRedirects {
  /** Of the route that the request is on; null when that follows none. */
  policy: InternalRedirectSettings | null = null;
  count = 0;
  readonly #seen = new Map<string, Set<string>>();
  /** Null when more has come than is kept. */
  #body: ReplayBuffer | null;

  /** @param limitBytes of the body. */
  constructor(limitBytes: number) {
    this.#body = new ReplayBuffer(limitBytes);
  }

  /** The body is there for another request. */
  get isKept(): boolean {
    return this.#body !== null;
  }

  get keptBytes(): number {
    return this.#body?.length ?? 0;
  }

  keep(bytes: Buffer, start: number, end: number): void {
    if (this.#body !== null && !this.#body.add(bytes, start, end)) this.#body = null;
  }

  /** All of it, in memory that may be given away. */
  body(): Buffer {
    return this.#body?.copy() ?? NO_BYTES;
  }

  dropBody(): void {
    this.#body = new ReplayBuffer(0);
  }

  /** A response that may lead elsewhere. */
  concerns(status: number): boolean {
    return this.policy?.statuses.includes(status) ?? false;
  }

  /** Whether the policy lets a redirect go from route to route. @param from, to names. */
  accepts(predicates: readonly RedirectPredicate[], from: string, to: string, isHttps: boolean): boolean {
    return predicates.every((predicate) => this.#holds(predicate, from, to, isHttps));
  }

  #holds(predicate: RedirectPredicate, from: string, to: string, isHttps: boolean): boolean {
    switch (predicate.kind) {
      case 'allowed-routes':
        return predicate.names.includes(to);
      case 'previous-routes':
        return this.#isNew(from, to);
      case 'safe-cross-scheme':
        return !isHttps;
    }
  }

  #isNew(from: string, to: string): boolean {
    let targets = this.#seen.get(from);
    if (targets === undefined) {
      targets = new Set();
      this.#seen.set(from, targets);
    }
    if (targets.has(to)) return false;
    targets.add(to);
    return true;
  }
}
