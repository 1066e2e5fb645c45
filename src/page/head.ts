// The top of the page: what state the server is in, and what it uses.

import type { Overview } from './data.ts';
import { el, type Row, Rows, setAttribute, setText } from './dom.ts';
import { bytes, duration, percent, whole } from './format.ts';

export class HeadPanel {
  readonly element: HTMLElement;
  readonly #values = new Map<string, HTMLElement>();
  readonly #threads: Rows<Thread>;
  readonly #warnings = el('details', { class: 'warnings', hidden: true });
  readonly #warningCount = el('summary');
  readonly #warningList = el('ul');
  #shownWarnings = '';

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
      this.#warnings,
    );
  }

  update({ head }: Overview): void {
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

  #showWarnings(warnings: readonly string[]): void {
    const all = warnings.join('\n');
    if (all === this.#shownWarnings) return;
    this.#shownWarnings = all;
    this.#warnings.hidden = warnings.length === 0;
    setText(this.#warningCount, `⚠ ${warnings.length} warning${warnings.length === 1 ? '' : 's'}`);
    this.#warningList.replaceChildren(...warnings.map((warning) => el('li', {}, warning)));
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
