// Where resources come from beside the bootstrap: files and management servers, what has come of each type, and what was refused.

import type { Overview, Source, SourceType, Update } from './data.ts';
import { el, type Row, Rows, setAttribute, setText } from './dom.ts';
import { clockTime, duration, whole } from './format.ts';

const COLUMNS = ['source', 'state', 'resources', 'wanted', 'last accepted', 'last refused'];
const KINDS: Readonly<Record<Source['kind'], string>> = {
  file: 'file',
  stream: 'management server',
  polls: 'management server, asked by HTTP',
};
const STATES: Readonly<Record<Source['kind'], readonly [good: string, bad: string]>> = {
  file: ['read', 'not read'],
  stream: ['connected', 'not connected'],
  polls: ['answers', 'no answer'],
};

interface Line {
  readonly source: Source;
  /** Undefined where nothing of it is wanted. */
  readonly type: SourceType | undefined;
  readonly isFirst: boolean;
  readonly key: string;
  readonly nowMs: number;
}

export class SourcesPanel {
  readonly element: HTMLElement;
  readonly #rows: Rows<Line>;
  readonly #count = el('span', { class: 'quiet' });

  constructor() {
    const body = el('tbody');
    this.#rows = new Rows(body, ({ key }) => key, sourceLine);
    const heads = COLUMNS.map((name) => el('th', { scope: 'col' }, name));
    this.element = el(
      'section',
      { id: 'live-sources', 'aria-labelledby': 'sources-title', hidden: true },
      el('div', { class: 'title' }, el('h2', { id: 'sources-title' }, 'Discovery'), this.#count),
      el(
        'div',
        { class: 'scroll' },
        el('table', { class: 'dense sources' }, el('thead', {}, el('tr', {}, ...heads)), body),
      ),
    );
  }

  update({ sources, sourceCount, nowMs }: Overview): void {
    this.element.hidden = sourceCount === 0;
    const more = sourceCount - sources.length;
    setText(this.#count, more > 0 ? `and ${whole(more)} more` : '');
    this.#rows.update(sources.flatMap((source, at) => linesOf(source, at, nowMs)));
  }
}

function linesOf(source: Source, at: number, nowMs: number): readonly Line[] {
  const types = source.types.length === 0 ? [undefined] : source.types;
  return types.map((type, index) => ({
    source,
    type,
    isFirst: index === 0,
    key: `${at} ${source.name} ${type?.name ?? ''}`,
    nowMs,
  }));
}

function sourceLine(): Row<Line> {
  const name = el('strong');
  const kind = el('div', { class: 'quiet' });
  const state = el('span');
  const complaint = el('div', { class: 'reason' });
  const type = el('td');
  const wanted = el('td', { class: 'number' });
  const accepted = el('td');
  const refused = el('td', { class: 'reason' });
  const first = [el('td', {}, name, kind), el('td', {}, state, complaint)];
  const row = el('tr', {}, ...first, type, wanted, accepted, refused);
  return {
    elements: [row],
    update({ source, type: of, isFirst, nowMs }) {
      const [good, bad] = STATES[source.kind];
      setText(name, isFirst ? source.name : '');
      setText(kind, isFirst ? [KINDS[source.kind], source.identifier].filter((text) => text !== '').join(' · ') : '');
      setText(state, isFirst ? `${source.isConnected ? good : bad} ${sinceText(source.sinceMs, nowMs)}` : '');
      setAttribute(state, 'class', source.isConnected ? 'good' : 'bad');
      setText(complaint, isFirst ? source.complaint : '');
      setText(type, of?.name ?? '');
      setText(wanted, of === undefined ? '' : wantedText(of));
      setText(accepted, updateText(of?.accepted ?? null, nowMs));
      const refusal = of?.refused ?? null;
      setText(refused, refusal === null ? '' : `${updateText(refusal, nowMs)}: ${refusal.reasons}`);
      const isLast = refusal !== null && refusal.atMs >= (of?.accepted?.atMs ?? 0);
      refused.classList.toggle('bad', isLast);
      refused.classList.toggle('quiet', !isLast);
    },
  };
}

function wantedText({ wanted, unasked }: SourceType): string {
  const names = wanted === null ? 'all' : whole(wanted);
  return unasked === 0 ? names : `${names} (${whole(unasked)} unasked)`;
}

function updateText(update: Update | null, nowMs: number): string {
  if (update === null) return '–';
  const version = update.version === '' ? '' : `version ${update.version}, `;
  return `${version}${clockTime(update.atMs)}, ${duration((nowMs - update.atMs) / 1000)} ago`;
}

function sinceText(sinceMs: number, nowMs: number): string {
  return `for ${duration((nowMs - sinceMs) / 1000)}`;
}
