// Incremental: requests say which names are wanted from now on, and which no more; responses what has come and what is gone. Each is
// answered, whatever is asked for meanwhile. Who wants a name of which the server has told others already has it asked for again, so that
// it is told again.

import { encodeChangesRequest } from '../../../config/exchange.ts';
import type { NodeMessage, ReadResponse } from '../../../config/index.ts';
import type { Exchange, ExchangeType, WantedNames } from './exchange.ts';

/** As a name, it stands for all there are. */
const ALL = '*';

interface Answer {
  readonly nonce: string;
  readonly refusal: string | undefined;
}

export class ChangesExchange implements Exchange {
  readonly #type: ExchangeType;
  readonly #wanted: WantedNames;
  /** By name: what has been accepted. Survives the stream. */
  readonly #versions = new Map<string, string>();
  /** That the server has been asked for in this stream. */
  #asked = new Set<string>();
  /** Of those, the ones that it is to be asked for again. */
  readonly #again = new Set<string>();
  #answers: Answer[] = [];
  #isFirst = true;
  #hasNews = false;

  /** The server hears of each response for itself, in few bytes. */
  readonly canWait = false;

  constructor(type: ExchangeType, wanted: WantedNames) {
    this.#type = type;
    this.#wanted = wanted;
  }

  get isDue(): boolean {
    if (this.#answers.length > 0) return true;
    return this.#hasNews && (this.#again.size > 0 || this.#differs());
  }

  begin(): void {
    this.#asked = new Set();
    this.#again.clear();
    this.#answers = [];
    this.#isFirst = true;
    this.#hasNews = true;
  }

  came(names: Iterable<string> | undefined): void {
    this.#hasNews = true;
    // Nor is the server of the next stream to take it for known.
    if (names === undefined) this.#versions.clear();
    for (const name of names ?? [ALL]) {
      this.#versions.delete(name);
      if (this.#asked.has(name)) this.#again.add(name);
    }
  }

  went(): void {
    this.#hasNews = true;
  }

  next(node: NodeMessage | undefined): Uint8Array {
    const [answer] = this.#answers.splice(0, 1);
    const wanted = this.#wantedNames();
    const subscribed = [...wanted].filter((name) => !this.#asked.has(name) || this.#again.has(name));
    const unsubscribed = [...this.#asked].filter((name) => !wanted.has(name));
    for (const name of unsubscribed) this.#versions.delete(name);
    this.#asked = wanted;
    this.#again.clear();
    this.#hasNews = false;
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    return encodeChangesRequest({
      typeUrl: this.#type.typeUrl,
      nonce: answer?.nonce ?? '',
      refusal: answer?.refusal,
      node,
      // A first request without names asks for all, in words that older servers know.
      subscribed: isFirst && this.#wanted.isWildcard && wanted.size === 1 ? [] : subscribed,
      unsubscribed,
      versions: isFirst ? this.#versions : NOTHING,
    });
  }

  taking(): void {}

  /** Each of them says what no other does. */
  overtaken(): never {
    throw new Error('a response of changes is never passed over');
  }

  taken({ nonce, resources, removed }: ReadResponse, refusal: string | undefined, isOver: boolean): void {
    if (!isOver) this.#answers.push({ nonce, refusal });
    if (refusal !== undefined) return;
    for (const { name, version, bytes } of resources) {
      // Who has come meanwhile has not been told of it.
      if (bytes !== undefined && !this.#again.has(name)) this.#versions.set(name, version);
    }
    for (const name of removed) this.#versions.delete(name);
  }

  #differs(): boolean {
    const wanted = this.#wantedNames();
    if (wanted.size !== this.#asked.size) return true;
    for (const name of wanted) if (!this.#asked.has(name)) return true;
    return false;
  }

  #wantedNames(): Set<string> {
    const { isWildcard, names } = this.#wanted;
    return new Set(isWildcard ? [ALL, ...names] : names);
  }
}

const NOTHING: ReadonlyMap<string, string> = new Map();
