// How fast a response may go on: an even stream of small pieces. While nothing is held back nothing is saved up, so that
// what comes after a pause is as slow as the rest.

/** Pieces a second. */
const PIECES = 16;
export const PIECE_MS: number = 1000 / PIECES;

export class Pacing {
  readonly #bytesPerMs: number;
  readonly #pieceBytes: number;
  #startedMs = 0;
  #sentBytes = 0;

  /** @param bytesPerSecond above 0. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerMs = bytesPerSecond / 1000;
    this.#pieceBytes = Math.max(1, Math.floor(bytesPerSecond / PIECES));
  }

  /** Something is held back that was not before; its first piece may go at once. */
  begin(nowMs: number): void {
    this.#startedMs = nowMs;
    this.#sentBytes = 0;
  }

  /** How many bytes may go on now, which counts as done. */
  take(nowMs: number): number {
    const allowed = this.#pieceBytes + Math.floor((nowMs - this.#startedMs) * this.#bytesPerMs);
    const bytes = Math.max(0, allowed - this.#sentBytes);
    this.#sentBytes += bytes;
    return bytes;
  }
}
