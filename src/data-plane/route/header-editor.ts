// The header edits of a route, ready to apply. Made once per snapshot; most routes have none, and constant lines that
// are only added cost as much as any prepared line.
//
// Each level first removes, then works out all its values, then overwrites, then appends: what one addition writes
// is not seen by the next of the same level.

import type { HeaderAddition, HeaderEdits } from '../../snapshot/index.ts';
import { PreparedLines } from '../../wasm/http1.ts';
import type { FormatFacts } from '../format/facts.ts';
import { TextFormatter } from '../format/text-formatter.ts';

/** A head whose fields can be changed: one that passes through, or one that is being made. Names are in lower case. */
export interface EditableHead {
  /** True when the head will have such a field as things stand. */
  hasField(name: string): boolean;
  removeField(name: string): void;
  /** Value as things stand, several fields joined. */
  headerByName(name: string): string | undefined;
  /** All fields that the head will have as things stand, in order, with their names in lower case. */
  entries(): readonly (readonly [name: string, value: string])[];
  append(name: string, value: string): void;
  /** @param isBehindOthers lines that have been appended stay in front of these. */
  appendPrepared(lines: PreparedLines, isBehindOthers?: boolean): void;
}

/** In place of all fields of the name. */
export function replaceField(head: EditableHead, name: string, value: string): void {
  head.removeField(name);
  head.append(name, value);
}

/** Who knows what command operators ask for; asked only where there are any. */
export interface FactsSource {
  readonly facts: FormatFacts;
}

interface Addition {
  readonly name: string;
  /** The value, when it is always the same. */
  readonly literal: string | null;
  readonly format: TextFormatter;
  readonly action: HeaderAddition['action'];
  readonly keepsEmptyValue: boolean;
}

interface Level {
  readonly remove: readonly string[];
  readonly add: readonly Addition[];
}

/** @returns null when there is nothing to edit. */
export function compileHeaderEdits(levels: readonly HeaderEdits[]): HeaderEditor | null {
  return levels.length === 0 ? null : new HeaderEditor(levels);
}

export class HeaderEditor {
  /** Of all fields that it may change, as configured. */
  readonly names: readonly string[];
  readonly #levels: readonly Level[];
  /** All there is to do, when that is to add the same lines to every head. */
  readonly #constant: PreparedLines | null;
  /** Names and values in turn; empty between levels, so that none of them needs lists of its own. */
  readonly #overwrites: string[] = [];
  readonly #appends: string[] = [];

  constructor(levels: readonly HeaderEdits[]) {
    this.names = levels.flatMap(({ remove, add }) => [...remove, ...add.map(({ name }) => name)]);
    this.#levels = levels.map(({ remove, add }) => ({ remove, add: add.map(compileAddition) }));
    this.#constant = this.#levels.every(isConstant) ? new PreparedLines(constantLines(this.#levels)) : null;
  }

  /**
   * @param isBehindOthers the head has edits whose lines have to stay in front of these, and no prepared line does.
   */
  apply(head: EditableHead, source: FactsSource, isBehindOthers = false): void {
    if (this.#constant === null) for (const level of this.#levels) this.#applyLevel(level, head, source);
    else if (this.#constant.lineCount > 0) head.appendPrepared(this.#constant, isBehindOthers);
  }

  #applyLevel({ remove, add }: Level, head: EditableHead, source: FactsSource): void {
    for (const name of remove) head.removeField(name);
    for (const { name, literal, format, action, keepsEmptyValue } of add) {
      const value = literal ?? format.render(source.facts);
      if (value === '' && !keepsEmptyValue) continue;
      if (action === 'add-if-absent' && head.hasField(name)) continue;
      if (action === 'overwrite-if-present' && !head.hasField(name)) continue;
      const isAppended = action === 'append' || action === 'add-if-absent';
      (isAppended ? this.#appends : this.#overwrites).push(name, value);
    }
    this.#overwrite(head);
    this.#append(head);
  }

  #overwrite(head: EditableHead): void {
    const list = this.#overwrites;
    for (let index = 0; index < list.length; index += 2) {
      head.removeField(list[index]!);
      head.append(list[index]!, list[index + 1]!);
    }
    clear(list);
  }

  #append(head: EditableHead): void {
    const list = this.#appends;
    for (let index = 0; index < list.length; index += 2) head.append(list[index]!, list[index + 1]!);
    clear(list);
  }
}

/** Setting the length of an array is a call into the engine's runtime, which costs more than a few lines. */
function clear(list: string[]): void {
  while (list.length > 0) list.pop();
}

function compileAddition({ name, value, action, keepsEmptyValue }: HeaderAddition): Addition {
  const isLiteral = value.every((segment) => typeof segment === 'string');
  return {
    name,
    literal: isLiteral ? value.join('') : null,
    format: new TextFormatter(value, { missing: '' }),
    action,
    keepsEmptyValue,
  };
}

function isConstant({ remove, add }: Level): boolean {
  return remove.length === 0 && add.every(({ literal, action }) => literal !== null && action === 'append');
}

function constantLines(levels: readonly Level[]): readonly string[] {
  const lines: string[] = [];
  for (const { add } of levels) {
    for (const { name, literal, keepsEmptyValue } of add) {
      if (literal !== '' || keepsEmptyValue) lines.push(`${name}: ${literal}`);
    }
  }
  return lines;
}
