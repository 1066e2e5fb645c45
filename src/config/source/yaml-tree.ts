// YAML text to value tree. js-yaml finds the events; this file gives them their meaning: scalar rules, tags,
// anchors and aliases, merge keys, duplicate keys, and the limits that keep hostile input cheap.
//
// - A key tagged `!ignore` is dropped with its value; anchors inside it can still be used.
// - `<<` merges the map (or list of maps) it holds into its map; keys written out win, earlier maps win over
//   later ones. Readers that do not know merge keys refuse `<<` as an unknown field, so no file changes meaning.
// - An alias shares its anchor's node. What the shared nodes would amount to if written out is counted and
//   bounded, so an alias bomb ends at once while thousands of honest aliases pass.

import {
  EVENT_ID,
  type Event,
  getScalarValue,
  parseEvents,
  SCALAR_STYLE,
  type ScalarEvent,
  YAMLException,
} from 'js-yaml';
import { type MapEntry, type MapNode, quote, scalarNode, type ValueNode } from './node.ts';
import { MAX_DEPTH, SyntaxFault, tooDeep } from './syntax-error.ts';
import { plainScalar } from './yaml-scalar.ts';

/** Nodes that aliases may add over what is written in the file. */
const MAX_ALIASED_NODES = 2_000_000;

/** From this many keys on, a set finds duplicates faster than a scan. */
const SCAN_LIMIT = 12;

interface Anchor {
  /** Undefined while the anchored collection is still being read: an alias to it would be a loop. */
  node: ValueNode | undefined;
  /** Nodes it stands for, itself included. */
  size: number;
}

interface Tagged {
  readonly tagStart: number;
  readonly tagEnd: number;
}

/** The tree of the only document in `text`; undefined when there is none. Throws SyntaxFault. */
export function parseYaml(text: string): ValueNode | undefined {
  return new YamlTreeBuilder(text, readEvents(text)).build();
}

function readEvents(text: string): readonly Event[] {
  try {
    return parseEvents(text, { maxDepth: MAX_DEPTH });
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const offset = error.mark?.position ?? 0;
    if (error.reason.includes('nesting exceeded')) throw tooDeep(offset);
    throw new SyntaxFault(`not valid YAML: ${error.reason}`, offset);
  }
}

class YamlTreeBuilder {
  readonly #text: string;
  readonly #events: readonly Event[];
  readonly #anchors = new Map<string, Anchor>();
  #at = 0;
  /** Nodes made so far, aliased ones counted as often as they are used. */
  #nodes = 0;
  #aliasedNodes = 0;

  constructor(text: string, events: readonly Event[]) {
    this.#text = text;
    this.#events = events;
  }

  build(): ValueNode | undefined {
    let root: ValueNode | undefined;
    for (let documents = 0; this.#at < this.#events.length; documents += 1) {
      this.#at += 1; // the document event itself
      const start = this.#here();
      if (documents === 1) throw new SyntaxFault('holds more than one YAML document', Math.max(start, 0));
      while (this.#events[this.#at]!.type !== EVENT_ID.POP) root = this.#node();
      this.#at += 1;
    }
    return root;
  }

  #here(): number {
    const event = this.#events[this.#at];
    return event === undefined ? -1 : offsetOf(event);
  }

  #node(): ValueNode {
    const event = this.#events[this.#at]!;
    this.#at += 1;
    switch (event.type) {
      case EVENT_ID.ALIAS:
        return this.#alias(this.#text.slice(event.anchorStart, event.anchorEnd), event.anchorStart);
      case EVENT_ID.SCALAR:
        return this.#anchored(event, () => this.#scalar(event));
      case EVENT_ID.SEQUENCE:
        return this.#anchored(event, () => this.#list(event.start));
      case EVENT_ID.MAPPING:
        return this.#anchored(event, () => this.#map(event.start));
      default:
        throw new SyntaxFault('unexpected end of a YAML collection', 0);
    }
  }

  #anchored(event: { anchorStart: number; anchorEnd: number }, read: () => ValueNode): ValueNode {
    this.#nodes += 1;
    if (event.anchorStart === -1) return read();
    const before = this.#nodes;
    const anchor: Anchor = { node: undefined, size: 1 };
    this.#anchors.set(this.#text.slice(event.anchorStart, event.anchorEnd), anchor);
    anchor.node = read();
    anchor.size = 1 + this.#nodes - before;
    return anchor.node;
  }

  #alias(name: string, offset: number): ValueNode {
    const anchor = this.#anchors.get(name);
    if (anchor === undefined) throw new SyntaxFault(`alias *${name} has no anchor before it`, offset);
    if (anchor.node === undefined) throw new SyntaxFault(`alias *${name} lies inside its own anchor`, offset);
    this.#nodes += anchor.size;
    this.#aliasedNodes += anchor.size;
    if (this.#aliasedNodes > MAX_ALIASED_NODES) {
      throw new SyntaxFault(`aliases stand for more than ${MAX_ALIASED_NODES} values`, offset);
    }
    return anchor.node;
  }

  #scalar(event: ScalarEvent): ValueNode {
    const text = getScalarValue(this.#text, event);
    const offset = offsetOf(event);
    const isPlain = event.style === SCALAR_STYLE.PLAIN && !this.#isStringTag(event);
    return isPlain ? plainScalar(text, offset) : scalarNode(offset, 'string', text);
  }

  /** `!` and `!!str` ask for a string, as quotes do; other tags mean nothing to a configuration. */
  #isStringTag(event: Tagged): boolean {
    const tag = this.#tag(event);
    return tag === '!' || tag === '!!str' || tag === '!<tag:yaml.org,2002:str>';
  }

  #tag(event: Tagged): string {
    return event.tagStart === -1 ? '' : this.#text.slice(event.tagStart, event.tagEnd);
  }

  #list(offset: number): ValueNode {
    const items: ValueNode[] = [];
    while (this.#events[this.#at]!.type !== EVENT_ID.POP) items.push(this.#node());
    this.#at += 1;
    return { kind: 'list', offset, items };
  }

  #map(offset: number): MapNode {
    const keys = new KeySet();
    const merged: ValueNode[] = [];
    // An empty key has no place of its own: that of the key before it, or of the map, comes nearest.
    let before = offset;
    while (this.#events[this.#at]!.type !== EVENT_ID.POP) {
      const event = this.#events[this.#at]!;
      const isIgnored = event.type === EVENT_ID.SCALAR && event.tagStart !== -1 && this.#tag(event) === '!ignore';
      const isMergeKey = this.#isMergeKey(event);
      const key = this.#node();
      const value = this.#node();
      if (key.offset !== -1) before = key.offset;
      if (isIgnored) continue;
      if (isMergeKey) merged.push(value.offset === -1 ? { ...value, offset: before } : value);
      else keys.add(this.#entry(key, value, before), this.#text);
    }
    this.#at += 1;
    for (const value of merged) mergeInto(keys, value);
    return { kind: 'map', offset, entries: keys.entries };
  }

  #isMergeKey(event: Event): boolean {
    if (event.type !== EVENT_ID.SCALAR || event.style !== SCALAR_STYLE.PLAIN) return false;
    return event.valueEnd - event.valueStart === 2 && this.#text.startsWith('<<', event.valueStart);
  }

  #entry(key: ValueNode, value: ValueNode, offset: number): MapEntry {
    if (key.kind !== 'scalar') throw new SyntaxFault(`a ${key.kind} cannot be a key`, offset);
    // Keys are taken as written: a header map may well hold `on:` or `010:`.
    return { key: key.raw, offset, value };
  }
}

/** The entries of one map in order, refusing a key that comes twice. */
class KeySet {
  readonly entries: MapEntry[] = [];
  #known: Set<string> | undefined;

  has(key: string): boolean {
    if (this.#known !== undefined) return this.#known.has(key);
    return this.entries.some((entry) => entry.key === key);
  }

  add(entry: MapEntry, text: string): void {
    if (this.has(entry.key)) throw duplicateKey(entry, this.entries, text);
    this.addNew(entry);
  }

  addNew(entry: MapEntry): void {
    this.entries.push(entry);
    if (this.#known !== undefined) this.#known.add(entry.key);
    else if (this.entries.length > SCAN_LIMIT) this.#known = new Set(this.entries.map((known) => known.key));
  }
}

function duplicateKey(entry: MapEntry, entries: readonly MapEntry[], text: string): SyntaxFault {
  const first = entries.find((known) => known.key === entry.key)!;
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < first.offset; at = text.indexOf('\n', at + 1)) line += 1;
  return new SyntaxFault(`duplicate key ${quote(entry.key)}, first given in line ${line}`, entry.offset);
}

function mergeInto(keys: KeySet, value: ValueNode): void {
  if (value.kind === 'map') {
    for (const entry of value.entries) if (!keys.has(entry.key)) keys.addNew(entry);
  } else if (value.kind === 'list') {
    for (const item of value.items) {
      if (item.kind !== 'map') throw new SyntaxFault('<< takes a map or a list of maps', item.offset);
      mergeInto(keys, item);
    }
  } else {
    throw new SyntaxFault('<< takes a map or a list of maps', value.offset);
  }
}

/** Where a node's own text starts; an empty scalar has none, so its anchor or tag stands in. */
function offsetOf(event: Event): number {
  switch (event.type) {
    case EVENT_ID.SCALAR:
      if (event.valueStart === -1) return Math.max(event.tagStart, event.anchorStart);
      // Quoted values start after the quote; the quote is what a reader looks for.
      return isQuoted(event) ? event.valueStart - 1 : event.valueStart;
    case EVENT_ID.SEQUENCE:
    case EVENT_ID.MAPPING:
      return event.start;
    case EVENT_ID.ALIAS:
      return event.anchorStart;
    default:
      return -1;
  }
}

function isQuoted(event: ScalarEvent): boolean {
  return event.style === SCALAR_STYLE.SINGLE_QUOTED || event.style === SCALAR_STYLE.DOUBLE_QUOTED;
}
