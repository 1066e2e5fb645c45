// A small line without axes, for a row of a table. The number stands beside it.

import { setAttribute, svg } from './dom.ts';

const WIDTH = 96;
const HEIGHT = 18;

export class Spark {
  readonly element = svg('svg', {
    class: 'spark',
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  });
  readonly #line = svg('path', { class: 'spark-line' });
  readonly #second = svg('path', { class: 'spark-bad' });

  constructor() {
    this.element.append(this.#line, this.#second);
  }

  /** @param bad a second line on the same scale, such as that of errors. */
  update(values: readonly (number | null)[], bad: readonly (number | null)[] = []): void {
    const most = Math.max(1e-9, ...values.map((value) => value ?? 0));
    setAttribute(this.#line, 'd', pathOf(values, most));
    setAttribute(this.#second, 'd', bad.some((value) => value !== null && value > 0) ? pathOf(bad, most) : '');
  }
}

function pathOf(values: readonly (number | null)[], most: number): string {
  // A point every pixel is enough: of several the highest.
  const step = Math.max(1, Math.ceil(values.length / WIDTH));
  let path = '';
  let isPenDown = false;
  for (let at = 0; at < values.length; at += step) {
    const known = values.slice(at, at + step).filter((value) => value !== null);
    if (known.length === 0) {
      isPenDown = false;
      continue;
    }
    const x = (at / Math.max(1, values.length - 1)) * WIDTH;
    const y = HEIGHT - 1 - (Math.max(...known) / most) * (HEIGHT - 2);
    path += `${isPenDown ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    isPenDown = true;
  }
  return path;
}
