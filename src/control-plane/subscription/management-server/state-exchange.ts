// State of the world: each request says all names that are wanted and the last version that was accepted; each response is answered
// by one with its nonce. Where others have come behind it, which a server sends that does not wait for answers, one answer stands for
// all of them: names are many.

import { encodeStateRequest, NO_NAMES, requestNames } from '../../../config/exchange.ts';
import type { NodeMessage, ReadResponse, RequestNames } from '../../../config/index.ts';
import type { Exchange, ExchangeType, WantedNames } from './exchange.ts';

export class StateExchange implements Exchange {
  readonly #type: ExchangeType;
  readonly #wanted: WantedNames;
  /** Survives the stream: the next server is told what this proxy has. */
  #acceptedVersion = '';
  #nonce = '';
  /** Of responses in this stream that nobody has told the server of, in their order. */
  #refusals: Refusal[] = [];
  /** Responses that are being taken in. */
  #taking = 0;
  /** That have been since the last request. */
  #unanswered = 0;
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
    const isQuiet = this.#taking === 0 || this.#unanswered >= MOST_UNANSWERED;
    return (this.#refusals.length > 0 || (this.#hasNews && isQuiet)) && this.#canAsk;
  }

  get canWait(): boolean {
    return this.#refusals.length === 0 && this.#names !== undefined && this.#hasAsked;
  }

  /** Without names it would ask for all of them where that means all; otherwise it takes back what it has asked for. */
  get #canAsk(): boolean {
    const { isWildcard, names } = this.#wanted;
    if (isWildcard || !isEmpty(names)) return true;
    return this.#hasAsked && !this.#type.service.isWildcard;
  }

  begin(): void {
    this.#nonce = '';
    this.#refusals = [];
    this.#taking = 0;
    this.#unanswered = 0;
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
    const refused = this.#refusals.shift();
    // Of a later response the server has to hear as well.
    if (refused === undefined || refused.nonce === this.#nonce) this.#hasNews = false;
    this.#unanswered = 0;
    this.#hasAsked = true;
    return encodeStateRequest({
      typeUrl: this.#type.typeUrl,
      version: refused?.acceptedVersion ?? this.#acceptedVersion,
      names: this.#names,
      nonce: refused?.nonce ?? this.#nonce,
      refusal: refused?.reason,
      node,
    });
  }

  taking(): void {
    this.#taking += 1;
  }

  overtaken(isOver: boolean): void {
    // It was never accepted. The answer to the later one is an answer to it.
    if (!isOver) this.#taking -= 1;
  }

  taken({ version, nonce }: ReadResponse, refusal: string | undefined, isOver: boolean): void {
    if (refusal === undefined) this.#acceptedVersion = version;
    if (isOver) return;
    this.#taking -= 1;
    this.#unanswered += 1;
    this.#nonce = nonce;
    this.#hasNews = true;
    if (refusal === undefined) return;
    this.#refusals.push({ nonce, acceptedVersion: this.#acceptedVersion, reason: refusal });
    if (this.#refusals.length > MOST_UNANSWERED) this.#refusals.shift();
  }
}

interface Refusal {
  readonly nonce: string;
  /** When it was refused. */
  readonly acceptedVersion: string;
  readonly reason: string;
}

/** A server hears of the last of so many at the latest, and of so many refusals where it is told more slowly than it sends. */
const MOST_UNANSWERED = 16;

function isEmpty(names: Iterable<string>): boolean {
  for (const _ of names) return false;
  return true;
}
