// A chart of the last five minutes: lines, or areas on top of each other. What it shows stands beside it as numbers too.

import uPlot from 'uplot';
import { el } from './dom.ts';
import { short } from './format.ts';
import { colour, onThemeChange } from './theme.ts';

const HEIGHT = 118;
const WINDOW_SECONDS = 300;

export interface ChartSeries {
  readonly label: string;
  /** Variable of the style. */
  readonly colour: string;
  readonly dash?: readonly number[];
}

export interface ChartOptions {
  /** For readers of the screen: what it is, with its unit. */
  readonly title: string;
  readonly series: readonly ChartSeries[];
  readonly isStacked?: boolean;
}

type Values = readonly (readonly (number | null)[])[];

export class Chart {
  readonly element: HTMLElement;
  readonly #options: ChartOptions;
  #plot: uPlot | undefined;
  #data: uPlot.AlignedData = [[]];
  #width = 0;

  constructor(options: ChartOptions) {
    this.#options = options;
    this.element = el('div', { class: 'chart', role: 'img', 'aria-label': options.title });
    new ResizeObserver(() => this.#resize()).observe(this.element);
    onThemeChange(() => this.#draw());
  }

  update(times: readonly number[], values: Values): void {
    const shown = this.#options.isStacked ? stacked(values) : values;
    this.#data = [times as number[], ...(shown as (number | null)[][])];
    if (this.#plot === undefined) this.#draw();
    else this.#plot.setData(this.#data);
  }

  #resize(): void {
    const width = Math.floor(this.element.clientWidth);
    if (width === this.#width || width === 0) return;
    this.#width = width;
    if (this.#plot === undefined) this.#draw();
    else this.#plot.setSize({ width, height: HEIGHT });
  }

  #draw(): void {
    this.#plot?.destroy();
    this.#plot = undefined;
    if (this.#width === 0 || this.#data[0].length === 0) return;
    this.#plot = new uPlot(this.#plotOptions(), this.#data, this.element);
  }

  #plotOptions(): uPlot.Options {
    const { series, isStacked = false } = this.#options;
    const quiet = colour('--quiet');
    const line = colour('--line');
    const axis = { stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: '11px system-ui' };
    return {
      width: this.#width,
      height: HEIGHT,
      padding: [6, 14, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 5 }, sync: { key: 'weir' } },
      scales: {
        x: { range: (_plot, _min, max) => [max - WINDOW_SECONDS, max] },
        y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.08 : 1] },
      },
      axes: [
        { ...axis, size: 22, space: 44, incrs: [60, 120, 300], values: (_plot, splits) => splits.map(clock) },
        { ...axis, size: 42, space: 26, values: (_plot, splits) => splits.map(short) },
      ],
      series: [
        {},
        ...series.map((each) => {
          const stroke = colour(each.colour);
          return {
            label: each.label,
            stroke,
            width: isStacked ? 0 : 1.5,
            ...(isStacked ? { fill: translucent(stroke) } : {}),
            ...(each.dash ? { dash: [...each.dash] } : {}),
            points: { show: false },
            spanGaps: false,
          };
        }),
      ],
      ...(isStacked
        ? { bands: series.slice(1).map((_, at) => ({ series: [at + 2, at + 1] as [number, number] })) }
        : {}),
    };
  }
}

function clock(seconds: number): string {
  const date = new Date(seconds * 1000);
  const two = (part: number): string => String(part).padStart(2, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

function translucent(rgb: string): string {
  return rgb.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.8)');
}

/** Each on top of those before it. */
function stacked(values: Values): (number | null)[][] {
  const sums: (number | null)[][] = [];
  for (const [at, series] of values.entries()) {
    const below = sums[at - 1];
    sums.push(
      series.map((value, index) => (value === null ? (below?.[index] ?? null) : value + (below?.[index] ?? 0))),
    );
  }
  return sums;
}
