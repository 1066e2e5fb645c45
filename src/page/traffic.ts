// What comes in, by listener: responses by class, connections, and how long requests take.

import { Chart } from './chart.ts';
import type { Listener } from './data.ts';
import { el, type Row, Rows, setText } from './dom.ts';
import { short } from './format.ts';
import { MEAN_SECONDS, type PageHistory, type Series } from './history.ts';

/** Places in Listener.points. */
const CX_RATE = 5;
const CX_ACTIVE = 6;
const P50 = 7;

const CLASSES = [
  { at: 0, label: '1xx', colour: '--c1xx' },
  { at: 1, label: '2xx', colour: '--c2xx' },
  { at: 2, label: '3xx', colour: '--c3xx' },
  { at: 3, label: '4xx', colour: '--c4xx' },
  { at: 4, label: '5xx', colour: '--c5xx' },
];
const TIMES = [
  { label: 'p50', colour: '--t50' },
  { label: 'p90', colour: '--t90' },
  { label: 'p99', colour: '--t99' },
  { label: 'p99.9', colour: '--t999', dash: [4, 3] },
];

interface ListenerState {
  readonly listener: Listener;
  readonly series: Series;
  readonly times: readonly number[];
}

export class TrafficPanel {
  readonly element: HTMLElement;
  readonly #rows: Rows<ListenerState>;
  readonly #empty = el('p', { class: 'quiet', hidden: true }, 'No listener is open.');

  constructor() {
    const list = el('div', { class: 'listeners' });
    this.#rows = new Rows(list, ({ listener }) => listener.name, listenerRow);
    this.element = el(
      'section',
      { id: 'live-traffic', 'aria-labelledby': 'traffic-title' },
      el(
        'div',
        { class: 'title' },
        el('h2', { id: 'traffic-title' }, 'Traffic'),
        el('span', { class: 'quiet' }, `rates: mean of ${MEAN_SECONDS} s · times: of the last flush of statistics`),
      ),
      this.#empty,
      list,
    );
  }

  update(listeners: readonly Listener[], history: PageHistory, added: number): void {
    this.#empty.hidden = listeners.length > 0;
    const { times } = history;
    this.#rows.update(
      listeners.map((listener) => ({
        listener,
        series: history.append('listener', listener.name, listener.points, added),
        times,
      })),
    );
  }
}

function figure(label: string, unit: string, colour?: string) {
  const value = el('dd', { class: 'number' });
  const swatch = colour && el('span', { class: `swatch ${colour.slice(2)}`, 'aria-hidden': 'true' });
  const element = el('div', {}, el('dt', {}, swatch, label, ' ', el('span', { class: 'unit' }, unit)), value);
  return { element, set: (number: number | null) => setText(value, short(number)) };
}

function listenerRow({ listener }: ListenerState): Row<ListenerState> {
  const addresses = el('span', { class: 'quiet' });
  const accepts = el('strong', { class: 'stopped', hidden: true });
  const total = figure('requests', '/s');
  const classes = CLASSES.map(({ label, colour }) => figure(label, '', colour));
  const active = figure('connections', 'open', '--cx');
  const opened = figure('opened', '/s');
  const times = TIMES.map(({ label, colour }, at) => figure(label, at === 0 ? 'ms' : '', colour));
  const requestChart = new Chart({
    title: `Responses a second by status class at listener ${listener.name}`,
    series: CLASSES,
    isStacked: true,
  });
  const timeChart = new Chart({ title: `Times of requests at listener ${listener.name}, ms`, series: TIMES });
  const connectionChart = new Chart({
    title: `Open connections at listener ${listener.name}`,
    series: [{ label: 'open', colour: '--cx' }],
    isStacked: true,
  });
  const figures = (...all: readonly { readonly element: HTMLElement }[]): HTMLElement =>
    el('dl', { class: 'figures' }, ...all.map(({ element }) => element));
  const panel = (name: string, list: HTMLElement, chart: Chart): HTMLElement =>
    el('div', { class: `panel ${name}` }, list, chart.element);
  const article = el(
    'article',
    { class: 'listener', 'aria-label': `Listener ${listener.name}` },
    el('h3', {}, listener.name, ' ', addresses, accepts),
    panel('of-requests', figures(total, ...classes), requestChart),
    panel('of-times', figures(...times), timeChart),
    panel('of-connections', figures(active, opened), connectionChart),
  );
  return {
    elements: [article],
    update({ listener: { addresses: bound, accepting }, series, times: at }) {
      setText(addresses, bound.join(', '));
      accepts.hidden = accepting === 'yes';
      setText(accepts, accepting === 'stopped' ? 'accepts no more' : 'draining');
      const rates = CLASSES.map((each) => series.mean(each.at, MEAN_SECONDS));
      total.set(rates.some((rate) => rate !== null) ? rates.reduce<number>((sum, rate) => sum + (rate ?? 0), 0) : null);
      for (const [index, each] of classes.entries()) each.set(rates[index]!);
      // Few servers ever answer so.
      classes[0]!.element.hidden = !series.all(0).some((rate) => rate !== null && rate > 0);
      active.set(series.last(CX_ACTIVE));
      opened.set(series.mean(CX_RATE, MEAN_SECONDS));
      for (const [index, each] of times.entries()) each.set(series.last(P50 + index));
      if (series.isEmpty) return;
      requestChart.update(
        at,
        CLASSES.map((each) => series.all(each.at)),
      );
      timeChart.update(
        at,
        TIMES.map((_, index) => series.all(P50 + index)),
      );
      connectionChart.update(at, [series.all(CX_ACTIVE)]);
    },
  };
}
