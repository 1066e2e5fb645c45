// What both ways to ask a management server have in common: which names are wanted, what the server has said, and what is still to
// be said to it. One for each type and stream; knows neither connections nor clocks.

import type { DiscoveryService, NodeMessage, RawResponse, ReadResponse } from '../../../config/index.ts';

/** The names that somebody wants. */
export interface WantedNames {
  /** Somebody wants all there are. */
  readonly isWildcard: boolean;
  readonly names: Iterable<string>;
  has(name: string): boolean;
}

export interface ExchangeType {
  readonly service: DiscoveryService;
  readonly typeUrl: string;
}

export interface Exchange {
  /** There is something to say. */
  readonly isDue: boolean;
  /** It is no more than that what has come is accepted. */
  readonly canWait: boolean;
  /** A stream begins: the server knows nothing of this one, and has said nothing. */
  begin(): void;
  /** Somebody has come who wants these, of which nobody has told him anything yet. @param names undefined for all there are. */
  came(names: Iterable<string> | undefined): void;
  /** Somebody has gone, and others may want other names. */
  went(): void;
  /** The next request. @param node undefined where the stream has said it. */
  next(node: NodeMessage | undefined): Uint8Array;
  /** A response has come, and is being taken in: nothing is said meanwhile that would answer it. */
  taking(response: RawResponse): void;
  /** A later one says all that it has said: it is passed over. @param isOver as of `taken`. */
  overtaken(isOver: boolean): void;
  /**
   * It has been.
   * @param refusal why it is refused; undefined where it is not.
   * @param isOver the stream that it has come by is: what was accepted counts, and nothing is to be said of it.
   */
  taken(response: ReadResponse, refusal: string | undefined, isOver: boolean): void;
}
