// What a filter tells its like: in this worker at once, in the others by way of main, a moment later. It goes out once a turn, and one
// message at a time: what gathers meanwhile goes together, and what would be too much becomes "all of it".
//
//   tell ──▶ listeners here
//     └────▶ gathered ──end of the turn, main has taken the last──▶ main ──▶ other workers: their listeners

import type { FilterNews } from '../../snapshot/index.ts';

/** @param texts null for so many that nobody has kept them. */
export type NewsListener = (texts: readonly string[] | null) => void;

/** What waits for main to take what went before. */
const MOST_TEXTS = 1000;
const MOST_CHARACTERS = 256 * 1024;

export class FilterNewsExchange {
  readonly #send: (news: readonly FilterNews[]) => void;
  readonly #onFault: (error: unknown) => void;
  readonly #listeners = new Map<string, Set<NewsListener>>();
  /** By topic; null for too much. */
  readonly #gathered = new Map<string, string[] | null>();
  #texts = 0;
  #characters = 0;
  #isOnItsWay = false;

  /** @param send to main, which says when it has taken it. @param onFault told of what listeners throw. */
  constructor(send: (news: readonly FilterNews[]) => void, onFault: (error: unknown) => void) {
    this.#send = send;
    this.#onFault = onFault;
  }

  /** @returns what ends it. */
  listen(topic: string, listener: NewsListener): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(topic) === listeners) this.#listeners.delete(topic);
    };
  }

  tell(topic: string, text: string): void {
    this.#hear({ topic, texts: [text] });
    if (this.#gathered.size === 0 && !this.#isOnItsWay) queueMicrotask(() => this.#flush());
    this.#gather(topic, text);
  }

  /** Of another worker. */
  told(news: readonly FilterNews[]): void {
    for (const each of news) this.#hear(each);
  }

  /** Main has taken what was sent last. */
  taken(): void {
    this.#isOnItsWay = false;
    this.#flush();
  }

  #gather(topic: string, text: string): void {
    const texts = this.#gathered.get(topic);
    if (texts === null) return;
    this.#texts += 1;
    this.#characters += text.length;
    if (this.#texts > MOST_TEXTS || this.#characters > MOST_CHARACTERS) {
      this.#gathered.set(topic, null);
      return;
    }
    if (texts === undefined) this.#gathered.set(topic, [text]);
    else texts.push(text);
  }

  #flush(): void {
    if (this.#gathered.size === 0 || this.#isOnItsWay) return;
    const news = [...this.#gathered].map(([topic, texts]) => ({ topic, texts }));
    this.#gathered.clear();
    this.#texts = 0;
    this.#characters = 0;
    this.#isOnItsWay = true;
    this.#send(news);
  }

  #hear({ topic, texts }: FilterNews): void {
    const listeners = this.#listeners.get(topic);
    if (listeners === undefined) return;
    for (const listener of listeners) {
      try {
        listener(texts);
      } catch (error) {
        this.#onFault(error);
      }
    }
  }
}
