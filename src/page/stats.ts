// All stats: found as one types, sorted by name, value or change, with a curve for the one at hand.

import { getJson } from './api.ts';
import type { Stats } from './data.ts';
import { el, type Row, Rows, setAttribute, setText } from './dom.ts';
import { duration, short, whole } from './format.ts';
import { HistogramView } from './histogram.ts';
import { compareBy, Sorting } from './sorting.ts';
import { Spark } from './spark.ts';
import { StatList, type StatRow } from './stat-list.ts';

const FIRST_ROWS = 100;
const MORE_ROWS = 400;
/** Values are asked for as often as that, or less often where an answer takes long. */
const PAUSE_MS = 1000;
const PAUSE_PER_ANSWER = 10;
const LONGEST_PAUSE_MS = 5000;

const KINDS: Readonly<Record<string, string>> = { c: 'counter', g: 'gauge', h: 'histogram', t: 'text' };

export class StatsPanel {
  readonly element: HTMLElement;
  readonly #list = new StatList();
  readonly #input: HTMLInputElement;
  readonly #kind: HTMLSelectElement;
  readonly #sorting: Sorting;
  readonly #rows: Rows<StatRow>;
  readonly #count = el('span', { class: 'quiet', role: 'status' });
  readonly #more = el('button', { type: 'button', hidden: true });
  readonly #detail = new StatDetail();
  #limit = FIRST_ROWS;
  #selected: string | undefined;
  #isVisible = false;
  #isAsking = false;
  #nextMs = 0;
  /** The server has more than it tells at once: it filters, too. */
  #asksForPart = false;
  #part = '';

  constructor(filter: string) {
    this.#sorting = new Sorting(
      [
        { key: 'name', label: 'Stat' },
        { key: 'kind', label: 'Kind' },
        { key: 'value', label: 'Value', isNumber: true },
        { key: 'change', label: 'Change', unit: '/s', isNumber: true },
      ],
      'name',
      () => this.#show(),
    );
    this.#input = el('input', {
      type: 'search',
      id: 'stat-filter',
      value: filter,
      placeholder: 'words, or /expression/',
      autocomplete: 'off',
      spellcheck: 'false',
      'aria-label': 'Stats whose names hold',
      input: () => this.#filterChanged(),
    });
    this.#input.value = filter;
    this.#kind = el(
      'select',
      { 'aria-label': 'Kind of stats', change: () => this.#filterChanged() },
      el('option', { value: '' }, 'all kinds'),
      ...Object.entries(KINDS).map(([value, name]) => el('option', { value }, `${name}s`)),
    );
    this.#more.addEventListener('click', () => {
      this.#limit += MORE_ROWS;
      this.#show();
    });
    const body = el('tbody');
    this.#rows = new Rows(
      body,
      ({ name }) => name,
      (row) => this.#row(row),
    );
    this.element = el(
      'section',
      { id: 'live-stats', 'aria-labelledby': 'stats-title' },
      el('div', { class: 'title' }, el('h2', { id: 'stats-title' }, 'Stats'), this.#input, this.#kind, this.#count),
      el(
        'div',
        { class: 'split' },
        el(
          'div',
          { class: 'scroll tall' },
          el('table', { class: 'dense stats' }, el('thead', {}, this.#sorting.head), body),
          this.#more,
        ),
        this.#detail.element,
      ),
    );
    new IntersectionObserver(([entry]) => {
      this.#isVisible = entry?.isIntersecting ?? false;
      if (this.#isVisible) void this.tick();
    }).observe(this.element);
  }

  focus(): void {
    this.element.scrollIntoView();
    this.#input.focus();
  }

  /** Asks for values when it is time, and when anybody looks. */
  async tick(): Promise<void> {
    if (!this.#isVisible || this.#isAsking || performance.now() < this.#nextMs) return;
    this.#isAsking = true;
    const startedMs = performance.now();
    try {
      const query = new URLSearchParams({ hash: this.#list.hash });
      if (this.#asksForPart && this.#part !== '') query.set('part', this.#part);
      const answer = await getJson<Stats>(`page/stats?${query}`);
      this.#asksForPart ||= answer.isCut;
      this.#list.take(answer, performance.now() / 1000);
      this.#show();
      await this.#detail.update(this.#list.row(this.#selected));
    } catch {
      setText(this.#count, 'The stats cannot be had.');
    } finally {
      this.#isAsking = false;
      const tookMs = performance.now() - startedMs;
      const pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(PAUSE_MS, PAUSE_PER_ANSWER * tookMs));
      this.#nextMs = performance.now() + pauseMs - 100;
    }
  }

  #filterChanged(): void {
    this.#limit = FIRST_ROWS;
    this.#part = this.#input.value.startsWith('/') ? '' : (this.#input.value.trim().split(/\s+/)[0] ?? '');
    if (this.#asksForPart) {
      this.#nextMs = 0;
      void this.tick();
    }
    this.#show();
  }

  #show(): void {
    const { places, isWrong } = this.#list.matching(this.#input.value, this.#kind.value);
    setAttribute(this.#input, 'aria-invalid', isWrong ? 'true' : null);
    const { key, isDescending } = this.#sorting;
    // They come by name.
    if (key !== 'name') {
      places.sort(compareBy<number>((at) => this.#list.keyAt(at, key as 'kind' | 'value' | 'change'), isDescending));
    } else if (isDescending) places.reverse();
    const shown = places.slice(0, this.#limit).map((at) => this.#list.rowAt(at));
    this.#list.follow(shown);
    this.#rows.update(shown);
    const of = places.length === this.#list.size ? '' : ` of ${whole(this.#list.size)}`;
    setText(
      this.#count,
      isWrong ? 'This is no expression.' : `${whole(places.length)}${of}${this.#asksForPart ? ' and more' : ''}`,
    );
    this.#more.hidden = places.length <= this.#limit;
    setText(this.#more, `Show ${whole(Math.min(MORE_ROWS, places.length - this.#limit))} more`);
  }

  #row({ name, kind }: StatRow): Row<StatRow> {
    const choose = (): void => {
      this.#selected = name;
      this.#markSelected();
      void this.#detail.update(this.#list.row(name), true);
    };
    const value = el('td', { class: 'number' });
    const change = el('td', { class: 'number' });
    const button = el('button', { type: 'button', class: 'stat-name', click: choose, 'aria-pressed': 'false' }, name);
    const row = el('tr', {}, el('th', { scope: 'row' }, button), el('td', {}, KINDS[kind]), value, change);
    return {
      elements: [row],
      update: (stat) => {
        setText(value, typeof stat.value === 'number' ? whole(stat.value) : stat.value);
        setText(change, kind === 't' ? '' : short(stat.change));
        setAttribute(button, 'aria-pressed', String(this.#selected === name));
      },
    };
  }

  #markSelected(): void {
    for (const button of this.element.querySelectorAll('.stat-name')) {
      setAttribute(button, 'aria-pressed', String(button.textContent === this.#selected));
    }
  }
}

/** What there is to see of one stat. */
class StatDetail {
  readonly element: HTMLElement;
  readonly #name = el('h3', {}, 'No stat is chosen');
  readonly #facts = el(
    'p',
    { class: 'quiet' },
    'Choose one to see its values since then, or the curve of a histogram.',
  );
  readonly #spark = new Spark();
  readonly #histogram = new HistogramView();

  constructor() {
    this.#spark.element.classList.add('large');
    this.element = el(
      'aside',
      { class: 'detail', 'aria-label': 'The stat at hand' },
      this.#name,
      this.#facts,
      this.#spark.element,
      this.#histogram.element,
    );
    this.#hide();
  }

  async update(row: StatRow | undefined, isNew = false): Promise<void> {
    if (row === undefined) return;
    setText(this.#name, row.name);
    if (isNew) this.#hide();
    if (row.kind === 'h') {
      await this.#histogram.load(row.name, this.#facts);
      return;
    }
    if (row.kind === 't') {
      setText(this.#facts, String(row.value));
      return;
    }
    const { values, seconds } = row;
    const known = values.filter((value) => value !== null);
    const range = known.length === 0 ? '' : `, ${short(Math.min(...known))} to ${short(Math.max(...known))}`;
    const what = row.kind === 'c' ? 'change a second' : 'value';
    setText(this.#facts, seconds === 0 ? `${what}: it begins now` : `${what} over ${duration(seconds)}${range}`);
    this.#spark.element.removeAttribute('hidden');
    this.#spark.update(values);
  }

  #hide(): void {
    this.#spark.element.setAttribute('hidden', '');
    this.#histogram.element.hidden = true;
  }
}
