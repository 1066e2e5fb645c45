// Value trees without their values, as bytes: what is left of a source when its messages have been read, to find the place of a field
// that turns out to be wrong later, perhaps in another thread. Unpacked when somebody asks.
//
//   node    scalar | list | map
//   scalar  0, offset
//   text    1, offset, key         a scalar whose text is looked for: the key of a map's entry in text format
//   list    2, offset, count, nodes
//   map     3, offset, count, (key, offset, node)s
//
// All of them are numbers of seven bits a byte; offsets are greater by one, as -1 stands for none; keys are places in a list.

import { type MapEntry, scalarNode, type ValueNode } from './node.ts';

const SCALAR = 0;
const TEXT = 1;
const LIST = 2;
const MAP = 3;

/** What entries of a map in text format call theirs. */
const ENTRY_KEY = 'key';

export class TreePacker {
  /** Of all trees that it has packed. */
  readonly keys: string[] = [];
  readonly #places = new Map<string, number>();
  #bytes = new Uint8Array(64 * 1024);
  #length = 0;

  /** So far, of all trees. */
  get length(): number {
    return this.#length;
  }

  /** All trees, one behind the other; the packer is not used any more. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }

  add(node: ValueNode): void {
    this.#node(node, '');
  }

  #node(node: ValueNode, key: string): void {
    if (node.kind === 'scalar') {
      const isText = key === ENTRY_KEY;
      this.#head(isText ? TEXT : SCALAR, node.offset);
      if (isText) this.#key(node.text);
    } else if (node.kind === 'list') {
      this.#head(LIST, node.offset);
      this.#number(node.items.length);
      for (const item of node.items) this.#node(item, '');
    } else {
      this.#head(MAP, node.offset);
      this.#number(node.entries.length);
      for (const entry of node.entries) {
        this.#key(entry.key);
        this.#number(entry.offset + 1);
        this.#node(entry.value, entry.key);
      }
    }
  }

  #head(kind: number, offset: number): void {
    this.#number(kind);
    this.#number(offset + 1);
  }

  #key(key: string): void {
    let place = this.#places.get(key);
    if (place === undefined) {
      place = this.keys.push(key) - 1;
      this.#places.set(key, place);
    }
    this.#number(place);
  }

  #number(value: number): void {
    if (this.#length + 5 > this.#bytes.length) {
      const bytes = new Uint8Array(this.#bytes.length * 2);
      bytes.set(this.#bytes);
      this.#bytes = bytes;
    }
    let rest = value;
    for (; rest > 127; rest >>>= 7) this.#bytes[this.#length++] = (rest & 127) | 128;
    this.#bytes[this.#length++] = rest;
  }
}

/** @param start of the tree in `bytes`. @param keys of its packer. */
export function unpackTree(bytes: Uint8Array, start: number, keys: readonly string[]): ValueNode {
  let at = start;
  const number = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const node = (): ValueNode => {
    const kind = number();
    const offset = number() - 1;
    if (kind === SCALAR) return scalarNode(offset, 'string', '');
    if (kind === TEXT) return scalarNode(offset, 'string', keys[number()]!);
    const count = number();
    if (kind === LIST) return { kind: 'list', offset, items: Array.from({ length: count }, node) };
    const entries = Array.from({ length: count }, (): MapEntry => {
      const key = keys[number()]!;
      const place = number() - 1;
      return { key, offset: place, value: node() };
    });
    return { kind: 'map', offset, entries };
  };
  return node();
}
