// Which sockets the workers have on an address of a listener: asked of all that run, answered when each has said so or has
// ended. Main thread.

interface Question {
  readonly waitsFor: Set<number>;
  readonly descriptors: number[];
  readonly answer: (descriptors: readonly number[]) => void;
}

export class SocketQuestions {
  readonly #open = new Map<number, Question>();
  #next = 1;

  /**
   * @param workers that are asked. @param send asks them, by the number of the question.
   * @returns the descriptors of all, which are the caller's.
   */
  ask(workers: readonly number[], send: (question: number) => void): Promise<readonly number[]> {
    if (workers.length === 0) return Promise.resolve([]);
    const question = this.#next++;
    return new Promise((resolve) => {
      this.#open.set(question, { waitsFor: new Set(workers), descriptors: [], answer: resolve });
      send(question);
    });
  }

  answered(question: number, worker: number, descriptors: readonly number[]): void {
    this.#open.get(question)?.descriptors.push(...descriptors);
    this.#settle(question, worker);
  }

  /** The worker has ended, and its sockets with it. */
  drop(worker: number): void {
    for (const question of [...this.#open.keys()]) this.#settle(question, worker);
  }

  #settle(number: number, worker: number): void {
    const question = this.#open.get(number);
    if (question === undefined) return;
    question.waitsFor.delete(worker);
    if (question.waitsFor.size > 0) return;
    this.#open.delete(number);
    question.answer(question.descriptors);
  }
}
