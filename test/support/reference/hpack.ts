// HPACK in plain TypeScript, the twin of assembly/http2: fields in, block out, by whatever representations the caller
// chooses, and back. Lists of pairs, no validation of names and values: RFC 7541 alone.

import * as layout from '../../../assembly/layout/http2.ts';
import { CodecMemory } from '../../../src/wasm/http1/memory.ts';
import { writeHuffmanCode } from '../../../src/wasm/http2/huffman.ts';
import { STATIC_TABLE } from '../../../src/wasm/http2/static-table.ts';

export type Field = readonly [name: string, value: string];

const STATIC: Field[] = STATIC_TABLE.flatMap(([name, ...values]) =>
  (values.length === 0 ? [''] : values).map((value): Field => [name, value]),
);

/** Codes as text of bits, by symbol. */
const CODES: string[] = (() => {
  const memory = new CodecMemory();
  writeHuffmanCode(memory);
  return Array.from({ length: 256 }, (_, symbol) =>
    memory.u32[(layout.HUFFMAN_CODES >> 2) + symbol]!.toString(2).padStart(
      memory.bytes[layout.HUFFMAN_LENGTHS + symbol]!,
      '0',
    ),
  );
})();
const SYMBOLS = new Map(CODES.map((code, symbol) => [code, symbol]));

export function huffman(text: string): Buffer {
  let bits = '';
  for (const byte of Buffer.from(text, 'latin1')) bits += CODES[byte]!;
  bits = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1');
  return Buffer.from(bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}

function unhuffman(bytes: Buffer): string {
  let code = '';
  let text = '';
  for (const bit of [...bytes].flatMap((byte) => [...byte.toString(2).padStart(8, '0')])) {
    code += bit;
    const symbol = SYMBOLS.get(code);
    if (symbol === undefined) continue;
    text += String.fromCharCode(symbol);
    code = '';
  }
  if (code.length > 7 || code.includes('0')) throw new Error('padding');
  return text;
}

export function integer(first: number, prefix: number, value: number): number[] {
  const mask = 2 ** prefix - 1;
  if (value < mask) return [first | value];
  const bytes = [first | mask];
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return [...bytes, rest];
}

function string(text: string, isHuffman: boolean): number[] {
  const bytes = isHuffman ? huffman(text) : Buffer.from(text, 'latin1');
  return [...integer(isHuffman ? 0x80 : 0, 7, bytes.length), ...bytes];
}

class Table {
  readonly entries: Field[] = [];
  max = 4096;

  size(): number {
    return this.entries.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
  }

  resize(max: number): void {
    this.max = max;
    while (this.size() > this.max) this.entries.pop();
  }

  insert(field: Field): void {
    this.entries.unshift(field);
    this.resize(this.max);
  }

  at(index: number): Field {
    const field = index <= 61 ? STATIC[index - 1] : this.entries[index - 62];
    if (field === undefined) throw new Error(`no index ${index}`);
    return field;
  }

  find(matches: (field: Field) => boolean): number {
    return [...STATIC, ...this.entries].findIndex(matches) + 1;
  }
}

/** How a field is written when the table does not hold it. */
export interface Choice {
  readonly form: 'indexed' | 'plain' | 'never';
  readonly huffman: boolean;
  /** The name by its index, where there is one. */
  readonly namesIndex: boolean;
}

export class ReferenceEncoder {
  readonly #table = new Table();

  sizeUpdate(max: number): number[] {
    this.#table.resize(max);
    return integer(0x20, 5, max);
  }

  field(field: Field, choice: Choice): number[] {
    const [name, value] = field;
    const whole = this.#table.find(([n, v]) => n === name && v === value);
    if (whole !== 0 && choice.form === 'indexed') return integer(0x80, 7, whole);
    const index = choice.namesIndex ? this.#table.find(([n]) => n === name) : 0;
    const first = choice.form === 'indexed' ? 0x40 : choice.form === 'never' ? 0x10 : 0;
    const start = integer(first, choice.form === 'indexed' ? 6 : 4, index);
    const named = index === 0 ? string(name, choice.huffman) : [];
    if (choice.form === 'indexed') this.#table.insert(field);
    return [...start, ...named, ...string(value, choice.huffman)];
  }
}

/** How a decoded field stood in its block. */
export type DecodedField = readonly [name: string, value: string, form: 'index' | Choice['form']];

export class ReferenceDecoder {
  readonly #table = new Table();
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;

  decode(block: Buffer): DecodedField[] {
    this.#bytes = block;
    this.#at = 0;
    const fields: DecodedField[] = [];
    while (this.#at < block.length) {
      const byte = block[this.#at]!;
      if (byte >= 0x80) {
        const [name, value] = this.#table.at(this.#integer(7));
        fields.push([name, value, 'index']);
      } else if (byte >= 0x40) {
        const [name, value] = this.#literal(6);
        this.#table.insert([name, value]);
        fields.push([name, value, 'indexed']);
      } else if (byte >= 0x20) {
        this.#table.resize(this.#integer(5));
      } else {
        fields.push([...this.#literal(4), byte >= 0x10 ? 'never' : 'plain']);
      }
    }
    return fields;
  }

  get tableMax(): number {
    return this.#table.max;
  }

  #literal(prefix: number): [string, string] {
    const index = this.#integer(prefix);
    const name = index === 0 ? this.#string() : this.#table.at(index)[0];
    return [name, this.#string()];
  }

  #integer(prefix: number): number {
    const mask = 2 ** prefix - 1;
    let value = this.#bytes[this.#at++]! & mask;
    if (value < mask) return value;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.#bytes[this.#at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  #string(): string {
    const isHuffman = this.#bytes[this.#at]! >= 0x80;
    const length = this.#integer(7);
    const bytes = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return isHuffman ? unhuffman(bytes) : bytes.toString('latin1');
  }
}
