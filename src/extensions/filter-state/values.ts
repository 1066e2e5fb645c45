// What is said in filter state, ready to be filled in. Made once per snapshot.

import { type FormatFacts, TextFormatter } from '../../data-plane/index.ts';
import type { FilterStateValue } from './settings.ts';

/** Where it is said: a connection, or a request. */
export interface StateHolder {
  setState(key: string, value: string, isReadOnly: boolean): void;
}

export class FilterStateValues {
  readonly #values: readonly { readonly value: FilterStateValue; readonly format: TextFormatter }[];

  constructor(values: readonly FilterStateValue[]) {
    this.#values = values.map((value) => ({ value, format: new TextFormatter(value.segments, { missing: '' }) }));
  }

  /** In their order: a later one may ask for what an earlier one has said. */
  sayTo(holder: StateHolder, facts: FormatFacts): void {
    for (const { value, format } of this.#values) {
      // Formats make byte text.
      const text = Buffer.from(format.render(facts), 'latin1').toString();
      if (text !== '' || !value.skipsEmpty) holder.setState(value.key, text, value.isReadOnly);
    }
  }
}
