// State of the world: each request says all names that are wanted and the last version that was accepted; each response is answered
// by one with its nonce.

import {
  encodeStateRequest,
  NO_NAMES,
  type NodeMessage,
  type RawResponse,
  type ReadResponse,
  type RequestNames,
  requestNames,
} from '../../../config/index.ts';
import type { Exchange, ExchangeType, WantedNames } from './exchange.ts';

export class StateExchange implements Exchange {
  readonly #type: ExchangeType;
  readonly #wanted: WantedNames;
  /** Survives the stream: the next server is told what this proxy has. */
  #acceptedVersion = '';
  #nonce = '';
  #refusal: string | undefined;
  #isTaking = false;
  #hasNews = false;
  /** It has asked for names in this stream. */
  #hasAsked = false;
  /** Those that are wanted; undefined where others are than those that were said last. */
  #names: RequestNames | undefined;

  constructor(type: ExchangeType, wanted: WantedNames) {
    this.#type = type;
    this.#wanted = wanted;
  }

  get isDue(): boolean {
    return this.#hasNews && !this.#isTaking && this.#canAsk;
  }

  /** Without names it would ask for all of them where that means all; otherwise it takes back what it has asked for. */
  get #canAsk(): boolean {
    const { isWildcard, names } = this.#wanted;
    if (isWildcard || !isEmpty(names)) return true;
    return this.#hasAsked && !this.#type.service.isWildcard;
  }

  begin(): void {
    this.#nonce = '';
    this.#refusal = undefined;
    this.#isTaking = false;
    this.#hasNews = true;
    this.#hasAsked = false;
  }

  /** A request goes out also where the same names are wanted: a server may tell of them again. */
  came(): void {
    this.#changed();
  }

  went(): void {
    this.#changed();
  }

  #changed(): void {
    this.#hasNews = true;
    this.#names = undefined;
  }

  next(node: NodeMessage | undefined): Uint8Array {
    const { isWildcard, names } = this.#wanted;
    this.#names ??= isWildcard ? NO_NAMES : requestNames(names);
    const refusal = this.#refusal;
    this.#refusal = undefined;
    this.#hasNews = false;
    this.#hasAsked = true;
    return encodeStateRequest({
      typeUrl: this.#type.typeUrl,
      version: this.#acceptedVersion,
      names: this.#names,
      nonce: this.#nonce,
      refusal,
      node,
    });
  }

  taking({ nonce }: RawResponse): void {
    this.#isTaking = true;
    this.#nonce = nonce;
  }

  taken({ version }: ReadResponse, refusal: string | undefined, isOver: boolean): void {
    if (refusal === undefined) this.#acceptedVersion = version;
    if (isOver) return;
    this.#isTaking = false;
    this.#hasNews = true;
    this.#refusal = refusal;
  }
}

function isEmpty(names: Iterable<string>): boolean {
  for (const _ of names) return false;
  return true;
}
