// The curve of a histogram: how many samples lie where, on an axis that grows by factors, with the quantiles marked.

import { getJson } from './api.ts';
import type { Histogram, Span } from './data.ts';
import { el, setText, svg } from './dom.ts';
import { short, whole } from './format.ts';

const WIDTH = 480;
const HEIGHT = 150;
const FLOOR = HEIGHT - 18;
const MARKED = [50, 90, 99];

export class HistogramView {
  readonly element = el('div', { class: 'histogram' });

  /** @param facts gets a line about it. */
  async load(name: string, facts: HTMLElement): Promise<void> {
    const histogram = await getJson<Histogram>(`page/histogram?name=${encodeURIComponent(name)}`).catch(
      () => undefined,
    );
    if (histogram === undefined) {
      setText(facts, 'This histogram cannot be had.');
      return;
    }
    const { interval, cumulative, unit } = histogram;
    const mean = cumulative.count === 0 ? null : cumulative.sum / cumulative.count;
    setText(facts, `${whole(cumulative.count)} samples since the start, mean ${short(mean)} ${unit}`);
    this.element.hidden = false;
    const curve = cumulative.count === 0 ? undefined : curveOf(cumulative, unit);
    this.element.replaceChildren(...(curve ? [curve] : []), quantileTable(interval, cumulative, unit));
  }
}

function curveOf({ bins, quantiles }: Span, unit: string): SVGElement {
  const least = Math.max(0.5, Math.min(...bins.filter(([left]) => left > 0).map(([left]) => left)));
  const most = Math.max(least * 2, ...bins.map(([left, width]) => left + width));
  const x = (value: number): number => (Math.log(Math.max(value, least) / least) / Math.log(most / least)) * WIDTH;
  const bars = joined(bins, x);
  const highest = Math.max(...bars.map(({ count }) => count));
  const rectangles = bars.map(({ from, to, count }) => {
    const height = Math.max(1, (count / highest) * (FLOOR - 16));
    return svg('rect', {
      class: 'bin',
      x: from.toFixed(1),
      y: (FLOOR - height).toFixed(1),
      width: Math.max(1, to - from - 0.5).toFixed(1),
      height: height.toFixed(1),
    });
  });
  const marks = MARKED.flatMap((percent, row) => {
    const value = quantiles.find(([each]) => each === percent)?.[1] ?? null;
    if (value === null) return [];
    const at = x(value);
    const isRight = at > WIDTH - 90;
    return [
      svg('line', { class: 'mark', x1: at, x2: at, y1: 4, y2: FLOOR }),
      svg(
        'text',
        { x: at + (isRight ? -3 : 3), y: 12 + 12 * row, 'text-anchor': isRight ? 'end' : 'start' },
        `p${percent} ${short(value)}`,
      ),
    ];
  });
  const ends = [
    svg('text', { x: 0, y: HEIGHT - 4 }, short(least)),
    svg('text', { x: WIDTH, y: HEIGHT - 4, 'text-anchor': 'end' }, `${short(most)} ${unit}`),
  ];
  const floor = svg('line', { class: 'floor', x1: 0, x2: WIDTH, y1: FLOOR, y2: FLOOR });
  const title = 'Distribution of the samples; the quantiles stand in the table below';
  return svg(
    'svg',
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title },
    ...rectangles,
    floor,
    ...marks,
    ...ends,
  );
}

/** Bins of some samples are narrower than a pixel: bars of at least four. */
function joined(bins: Span['bins'], x: (value: number) => number): { from: number; to: number; count: number }[] {
  const bars: { from: number; to: number; count: number }[] = [];
  for (const [left, width, count] of bins) {
    const [from, to] = [x(left), x(left + width)];
    const last = bars.at(-1);
    if (last !== undefined && from - last.from < 4) {
      last.to = Math.max(last.to, to);
      last.count += count;
    } else {
      bars.push({ from, to: Math.max(to, from + 4), count });
    }
  }
  return bars;
}

function quantileTable(interval: Span, cumulative: Span, unit: string): HTMLElement {
  const row = (label: string, now: string, all: string): HTMLElement =>
    el(
      'tr',
      {},
      el('th', { scope: 'row' }, label),
      el('td', { class: 'number' }, now),
      el('td', { class: 'number' }, all),
    );
  const rows = cumulative.quantiles.map(([percent, value], at) =>
    row(`p${percent}`, short(interval.quantiles[at]?.[1] ?? null), short(value)),
  );
  const head = ['', 'last interval', 'since the start'].map((text, at) =>
    el('th', { scope: 'col', class: at === 0 ? '' : 'number' }, text),
  );
  return el(
    'table',
    { class: 'dense quantiles' },
    el('caption', { class: 'hidden' }, `Quantiles, ${unit}`),
    el('thead', {}, el('tr', {}, ...head)),
    el('tbody', {}, row('samples', whole(interval.count), whole(cumulative.count)), ...rows),
  );
}
