// What the start of the server waits for. Targets are named before it begins, and become ready in any order; with the last of
// them the server is initialized, and stays so.
//
//   UNINITIALIZED ──begin──▶ INITIALIZING ──last target ready──▶ INITIALIZED

export type InitPhase = 'uninitialized' | 'initializing' | 'initialized';

export class InitManager {
  readonly #unready = new Set<string>();
  #phase: InitPhase = 'uninitialized';

  get phase(): InitPhase {
    return this.#phase;
  }

  /** Names of those that are waited for, in the order in which they were added. */
  get unready(): readonly string[] {
    return [...this.#unready];
  }

  /** Before `begin`. A name that has been added already is waited for once. @returns what tells that it is ready. Idempotent. */
  add(target: string): () => void {
    this.#unready.add(target);
    return () => {
      this.#unready.delete(target);
      this.#look();
    };
  }

  begin(): void {
    this.#phase = 'initializing';
    this.#look();
  }

  #look(): void {
    if (this.#phase === 'initializing' && this.#unready.size === 0) this.#phase = 'initialized';
  }
}
