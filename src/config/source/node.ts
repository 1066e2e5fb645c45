// The value tree that every textual form (YAML, JSON, text proto) is turned into before any schema is looked
// at. A node knows where it stands in its source, so a fault found at any later step can name line and column.
// Main thread; nodes are immutable once built and may be shared (a YAML alias is its anchor's node).

/**
 * What a scalar is before a field type is known. `number` holds a decimal number, `string` everything that
 * was quoted or is no other form. `word` is a bare identifier and exists only in text proto.
 */
export type ScalarForm = 'null' | 'bool' | 'number' | 'string' | 'word';

export interface ScalarNode {
  readonly kind: 'scalar';
  /** Index of the first character in the source text; -1 when the value has no place of its own. */
  readonly offset: number;
  readonly form: ScalarForm;
  /** The value as text: `true`/`false` for a bool, exact decimal digits for a number, decoded for a string. */
  readonly text: string;
  /** As written, for messages: `yes`, `0x1F`. Equal to `text` where nothing was rewritten. */
  readonly raw: string;
}

export interface ListNode {
  readonly kind: 'list';
  readonly offset: number;
  readonly items: readonly ValueNode[];
}

export interface MapEntry {
  readonly key: string;
  /** Where the key stands; a fault about the key itself points here. */
  readonly offset: number;
  readonly value: ValueNode;
}

export interface MapNode {
  readonly kind: 'map';
  readonly offset: number;
  /** In source order. Keys are unique, but in text proto, where a repeated field repeats its key. */
  readonly entries: readonly MapEntry[];
}

export type ValueNode = ScalarNode | ListNode | MapNode;

export function scalarNode(offset: number, form: ScalarForm, text: string, raw: string = text): ScalarNode {
  return { kind: 'scalar', offset, form, text, raw };
}

/** The value of `key`, or undefined. Linear: for the few look-ups outside the main walk. */
export function entryOf(map: MapNode, key: string): MapEntry | undefined {
  return map.entries.find((entry) => entry.key === key);
}

/** Characters of an offending value that a message quotes before it cuts it short. */
const QUOTE_LIMIT = 80;

/** An offending value quoted for a message: one line, bounded, control characters escaped. */
export function quote(text: string): string {
  const shown = text.length > QUOTE_LIMIT ? `${text.slice(0, QUOTE_LIMIT)}…` : text;
  return JSON.stringify(shown);
}

/** How a message names a node: `"abc"`, `number 5`, `a list`. */
export function describeNode(node: ValueNode): string {
  if (node.kind !== 'scalar') return `a ${node.kind}`;
  switch (node.form) {
    case 'null':
      return 'null';
    case 'bool':
      return node.raw === node.text ? node.text : `${node.text} (written ${quote(node.raw)})`;
    case 'number':
      return node.raw.length > QUOTE_LIMIT ? `${node.raw.slice(0, QUOTE_LIMIT)}…` : node.raw;
    default:
      return quote(node.text);
  }
}
