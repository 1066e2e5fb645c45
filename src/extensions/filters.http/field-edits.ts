// What a service wants done to the fields of a head. It is trusted with what the fields mean, never with where a message
// ends: those that frame it, and what could not stand in a line, are left out.

import type { EditableHead } from '../../data-plane/index.ts';

/** How a header comes beside those of its name. */
export type FieldAction = 'set' | 'append-if-present' | 'append' | 'add-if-absent' | 'set-if-present';

export interface FieldEdit {
  /** In lower case. */
  readonly name: string;
  /** A character per byte. */
  readonly value: string;
  readonly action: FieldAction;
}

/** RFC 9110 section 5.6.2. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE_VALUE = /[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/;

/** Of one connection or one message: they end with it. */
const FRAMING = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Names the part of a request that is no field, as HTTP/2 does. */
export function isPseudo(name: string): boolean {
  return name.startsWith(':');
}

export function isFraming(name: string): boolean {
  return FRAMING.has(name);
}

/** Whether a field could stand in a head. */
export function isValidField({ name, value }: FieldEdit): boolean {
  return (isPseudo(name) || NAME.test(name)) && !UNSAFE_VALUE.test(value);
}

/** Leaves out pseudo headers, what frames a message and what is not valid. */
export function editFields(head: EditableHead, edits: readonly FieldEdit[]): void {
  for (const edit of edits) if (!isPseudo(edit.name) && !isFraming(edit.name) && isValidField(edit)) apply(head, edit);
}

function apply(head: EditableHead, { name, value, action }: FieldEdit): void {
  switch (action) {
    case 'set':
      head.removeField(name);
      head.append(name, value);
      return;
    case 'append':
      head.append(name, value);
      return;
    case 'append-if-present':
      if (head.hasField(name)) join(head, name, value);
      return;
    case 'add-if-absent':
      if (!head.hasField(name)) head.append(name, value);
      return;
    case 'set-if-present':
      if (!head.hasField(name)) return;
      head.removeField(name);
      head.append(name, value);
      return;
  }
}

/** Into one field, so that what reads only the first sees all. */
function join(head: EditableHead, name: string, value: string): void {
  const before = head.headerByName(name) ?? '';
  head.removeField(name);
  head.append(name, `${before},${value}`);
}
