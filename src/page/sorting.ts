// Tables whose columns can be sorted by their heads.

import { el } from './dom.ts';

export interface Column {
  readonly key: string;
  readonly label: string;
  readonly unit?: string;
  readonly isNumber?: boolean;
  /** Not everything has an order. */
  readonly isFixed?: boolean;
}

export class Sorting {
  readonly head: HTMLTableRowElement;
  key: string;
  isDescending: boolean;
  readonly #cells = new Map<string, HTMLElement>();

  constructor(columns: readonly Column[], key: string, onChange: () => void) {
    this.key = key;
    this.isDescending = false;
    this.head = el('tr', {}, ...columns.map((column) => this.#cell(column, onChange)));
    this.#show();
  }

  #cell(column: Column, onChange: () => void): HTMLElement {
    const unit = column.unit !== undefined && el('span', { class: 'unit' }, ` ${column.unit}`);
    const className = column.isNumber ? 'number' : '';
    if (column.isFixed) return el('th', { scope: 'col', class: className }, column.label, unit);
    const choose = (): void => {
      this.isDescending = this.key === column.key ? !this.isDescending : (column.isNumber ?? false);
      this.key = column.key;
      this.#show();
      onChange();
    };
    const cell = el(
      'th',
      { scope: 'col', class: className },
      el('button', { type: 'button', click: choose }, column.label, unit),
    );
    this.#cells.set(column.key, cell);
    return cell;
  }

  #show(): void {
    for (const [key, cell] of this.#cells) {
      if (key === this.key) cell.setAttribute('aria-sort', this.isDescending ? 'descending' : 'ascending');
      else cell.removeAttribute('aria-sort');
    }
  }
}

/** Unknown values come last, however it is sorted. */
export function compareBy<Item>(value: (item: Item) => number | string | null, isDescending: boolean) {
  return (a: Item, b: Item): number => {
    const [left, right] = [value(a), value(b)];
    if (left === right) return 0;
    if (left === null) return 1;
    if (right === null) return -1;
    return left < right === isDescending ? 1 : -1;
  };
}
