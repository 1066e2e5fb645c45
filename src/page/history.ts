// The points that the page has: those of the server's five minutes, and then what each answer adds.

import type { Points } from './data.ts';

export const KEPT_POINTS = 300;
/** Rates as numbers are means of as many: every panel shows the same. */
export const MEAN_SECONDS = 10;

type Point = number | null;

function unknown(count: number): Point[] {
  return Array.from({ length: Math.min(count, KEPT_POINTS) }, () => null);
}

/** Points of all series of one listener or cluster, on the times of the whole page. */
export class Series {
  #series: Point[][] = [];
  #tick = -1;

  /**
   * @param tick of the newest of the `added` points. Those since the last time that nobody has told stay empty.
   * @param length of the times.
   */
  append(points: Points, added: number, tick: number, length: number): void {
    const missed = Math.max(0, tick - added - this.#tick);
    this.#tick = tick;
    if (points.length === 0 && this.#series.length === 0) return;
    const count = Math.max(points.length, this.#series.length);
    this.#series = Array.from({ length: count }, (_, at) => {
      const all = [...(this.#series[at] ?? []), ...unknown(missed), ...(points[at] ?? unknown(added))].slice(-length);
      return [...unknown(length - all.length), ...all];
    });
  }

  get isEmpty(): boolean {
    return this.#series.length === 0;
  }

  all(at: number): readonly Point[] {
    return this.#series[at] ?? [];
  }

  /** The newest one that is known, looking back a few seconds. */
  last(at: number): Point {
    return this.#series[at]?.slice(-8).findLast((value) => value !== null) ?? null;
  }

  /** Mean of the last seconds. */
  mean(at: number, seconds: number): Point {
    const known = (this.#series[at] ?? []).slice(-seconds).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
  }
}

/** All that the page knows of the last minutes. */
export class PageHistory {
  /** In seconds since the Unix epoch. */
  times: readonly number[] = [];
  tick = -1;
  readonly #byName = new Map<string, Series>();

  /** Call once an answer, before its points. */
  begin(tick: number, timesMs: readonly number[]): void {
    // A server that was started anew begins at 0 again.
    if (tick < this.tick) this.#forget();
    this.tick = tick;
    this.times = [...this.times, ...timesMs.map((ms) => ms / 1000)].slice(-KEPT_POINTS);
  }

  /** @param kind `listener` or `cluster`: both may have the same name. */
  append(kind: string, name: string, points: Points, added: number): Series {
    const key = `${kind} ${name}`;
    const series = this.#byName.get(key) ?? new Series();
    this.#byName.set(key, series);
    series.append(points, added, this.tick, this.times.length);
    return series;
  }

  #forget(): void {
    this.#byName.clear();
    this.times = [];
  }
}
