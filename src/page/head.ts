// The top of the page: what state the server is in, and what it uses.

import type { Overview, Warning } from './data.ts';
import { el, type Row, Rows, setAttribute, setText } from './dom.ts';
import { bytes, duration, percent, whole } from './format.ts';

export class HeadPanel {
  readonly element: HTMLElement;
  readonly #values = new Map<string, HTMLElement>();
  readonly #threads: Rows<Thread>;
  readonly #warnings = el('details', { class: 'warnings', hidden: true });
  readonly #warningCount = el('summary');
  readonly #warningList = el('ul');
  readonly #waits = el('p', { class: 'waits', hidden: true });
  #shownWarnings = '';
  #hadGrave = false;

  constructor() {
    const threads = el('ul', { class: 'threads', 'aria-label': 'Event loop use of threads, %' });
    this.#threads = new Rows(threads, ({ name }) => name, threadRow);
    this.#warnings.append(this.#warningCount, this.#warningList);
    const facts = ['Up', 'Epoch', 'Resident', 'Heap', 'Descriptors'].map((name) => this.#fact(name));
    this.element = el(
      'section',
      { id: 'live-head', 'aria-label': 'Process' },
      el('dl', { class: 'facts' }, ...facts),
      threads,
      this.#waits,
      this.#warnings,
    );
  }

  update({ head }: Overview): void {
    this.#waits.hidden = head.waitsFor.length === 0;
    setText(this.#waits, `Waits for: ${head.waitsFor.join(', ')}`);
    this.#set('Up', duration(head.uptimeSeconds));
    this.#set('Epoch', whole(head.epoch));
    this.#set('Resident', bytes(head.residentBytes));
    this.#set('Heap', bytes(head.heapBytes));
    const { descriptors, descriptorLimit: limit } = head;
    this.#set(
      'Descriptors',
      descriptors === null ? '–' : `${whole(descriptors)}${limit === null ? '' : ` / ${whole(limit)}`}`,
    );
    this.#threads.update(head.threads);
    this.#showWarnings(head.warnings);
  }

  #showWarnings(warnings: readonly Warning[]): void {
    const all = JSON.stringify(warnings);
    if (all === this.#shownWarnings) return;
    this.#shownWarnings = all;
    const grave = warnings.filter(({ isGrave }) => isGrave).length;
    // Once for each time that it gets grave: a reader may have closed it.
    if (grave > 0 && !this.#hadGrave) this.#warnings.open = true;
    this.#hadGrave = grave > 0;
    this.#warnings.hidden = warnings.length === 0;
    this.#warnings.classList.toggle('has-grave', grave > 0);
    const counts = [counted(grave, 'problem'), counted(warnings.length - grave, 'warning')];
    setText(this.#warningCount, `⚠ ${counts.filter((text) => text !== '').join(', ')}`);
    this.#warningList.replaceChildren(
      ...warnings.map(({ isGrave, text }) => el('li', { class: isGrave ? 'grave' : '' }, text)),
    );
  }

  #fact(name: string): HTMLElement {
    const value = el('dd', {}, '–');
    this.#values.set(name, value);
    return el('div', {}, el('dt', {}, name), value);
  }

  #set(name: string, text: string): void {
    setText(this.#values.get(name)!, text);
  }
}

function counted(count: number, what: string): string {
  if (count === 0) return '';
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

type Thread = Overview['head']['threads'][number];

function threadRow({ name }: Thread): Row<Thread> {
  const value = el('span', { class: 'number' });
  const meter = el('meter', { min: 0, max: 1, low: 0.7, high: 0.9, optimum: 0, 'aria-hidden': 'true' });
  return {
    elements: [el('li', {}, el('span', {}, name), meter, value)],
    update({ use }) {
      setAttribute(meter, 'value', (use ?? 0).toFixed(3));
      setText(value, use === null ? 'starting' : `${percent(Math.min(use, 0.9999))} %`);
    },
  };
}
