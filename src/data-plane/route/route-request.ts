// What routes are chosen by. One object per router, filled anew for each request: nothing in it outlives the choice.

import type { Random } from '../../base/random.ts';
import type { Metadata } from '../../snapshot/index.ts';
import { Method, type RequestHead } from '../../wasm/http1.ts';
import type { DownstreamFacts } from '../format/facts.ts';
import type { TlsFacts } from '../network/tls/connection-tls.ts';

/** @param port null for the cluster's own, unless the host has one. */
export interface NamedDestination {
  readonly host: string;
  readonly port: number | null;
}

/** What is known of the sender of a request, and of what filters have said of it. */
export interface RequestSender {
  readonly dynamicMetadata: Metadata | undefined;
  /** As far as trusted hops tell; empty when nobody knows. */
  readonly clientAddress: string;
  readonly downstream: { readonly tls: TlsFacts | null };
  /** The one object of its connection; made by whoever asks first. */
  readonly connectionEnds: DownstreamFacts;
  /** Where a filter sends it, in clusters that requests name their hosts for; null for where its head says. */
  readonly namedHost: NamedDestination | null;
  /** What filters have said of the request in filter state, else of its connection. */
  state(key: string): string | undefined;
}

export class RouteRequest {
  /** Borrowed until the next `read`. */
  head!: RequestHead;
  /** Path and query. */
  target = '';
  /** The target up to its query. */
  path = '';
  /** What routes are chosen by: the path, or what a table leaves of it. */
  matchedPath = '';
  isInternal = false;
  /** A CONNECT request, which has an authority and no path. */
  isConnect = false;
  /** Filters may have added anything to the head; otherwise only the connection manager has. */
  isFiltered = false;
  /** Null where nobody knows. */
  sender: RequestSender | null = null;
  readonly #random: Random;
  #drawn = -1;
  #authority: string | null = null;

  constructor(random: Random) {
    this.#random = random;
  }

  read(head: RequestHead, isInternal: boolean, isFiltered: boolean, sender: RequestSender | null = null): void {
    this.head = head;
    this.#authority = null;
    // A request that meets filters is read before them and behind them.
    if (!head.hasPath(this.target)) {
      this.target = head.path();
      const query = this.target.indexOf('?');
      this.path = query === -1 ? this.target : this.target.slice(0, query);
    }
    this.isInternal = isInternal;
    this.isFiltered = isFiltered;
    this.sender = sender;
    this.matchedPath = this.path;
    this.isConnect = head.methodId === Method.CONNECT;
    this.#drawn = -1;
  }

  /** host[:port] as the client sent it, any case. Only a table of several hosts asks for it. */
  get authority(): string {
    this.#authority ??= this.head.authority();
    return this.#authority;
  }

  /** What follows the '?', undefined without one. */
  get query(): string | undefined {
    return this.target.length === this.path.length ? undefined : this.target.slice(this.path.length + 1);
  }

  /** Uniform in 0 to 2^32 - 1, and the same for all that is decided of one request: shares then nest as in the reference. */
  get random(): number {
    if (this.#drawn === -1) this.#drawn = this.#random.u32();
    return this.#drawn;
  }

  /** The scheme by which the client came, as the upstream will be told. */
  get forwardedProto(): string {
    return this.head.headerByName('x-forwarded-proto') ?? 'http';
  }
}
