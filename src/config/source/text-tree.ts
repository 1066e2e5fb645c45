// Protobuf text format to value tree. No schema is needed for that: a message becomes a map whose keys may
// repeat (that is how repeated fields are written), an expanded Any `[host/type] { … }` becomes a map with
// the one key `[host/type]`. What the keys and words mean is decided by proto/text-reader.ts.

import { type MapEntry, type MapNode, type ScalarNode, scalarNode, type ValueNode } from './node.ts';
import { MAX_DEPTH, SyntaxFault, tooDeep } from './syntax-error.ts';
import { TokenReader } from './text-tokens.ts';

/** The tree of `text`, an empty map when it is empty. Throws SyntaxFault. */
export function parseTextProto(text: string): MapNode {
  const tokens = new TokenReader(text);
  const root = readMessage(tokens, '', 0, 0);
  return root;
}

function readMessage(tokens: TokenReader, close: string, offset: number, depth: number): MapNode {
  if (depth > MAX_DEPTH) throw tooDeep(offset);
  const entries: MapEntry[] = [];
  for (;;) {
    if (close === '' ? tokens.peek().kind === 'end' : tokens.skip(close)) return { kind: 'map', offset, entries };
    entries.push(readField(tokens, depth));
    // Fields may be separated by one comma or semicolon, or by nothing.
    if (!tokens.skip(',')) tokens.skip(';');
  }
}

function readField(tokens: TokenReader, depth: number): MapEntry {
  const { offset } = tokens.peek();
  const key = readKey(tokens);
  const hasColon = tokens.skip(':');
  if (tokens.isNext('{') || tokens.isNext('<') || tokens.isNext('[')) {
    return { key, offset, value: readCollection(tokens, depth) };
  }
  if (!hasColon) throw tokens.unexpected('":" or "{"');
  return { key, offset, value: readScalar(tokens) };
}

/** A field name, or `[…]` around a type URL or an extension's name. */
function readKey(tokens: TokenReader): string {
  if (tokens.peek().kind === 'word') return tokens.take().text;
  if (!tokens.isNext('[')) throw tokens.unexpected('a field name');
  let key = tokens.take().text;
  while (!tokens.isNext(']')) {
    const { kind, text } = tokens.peek();
    const isPart = kind === 'word' || kind === 'number' || (kind === 'punctuation' && '/.-%'.includes(text));
    if (!isPart) throw tokens.unexpected('"]"');
    key += tokens.take().text;
  }
  return key + tokens.take().text;
}

function readCollection(tokens: TokenReader, depth: number): ValueNode {
  const { text: open, offset } = tokens.take();
  if (open === '{') return readMessage(tokens, '}', offset, depth + 1);
  if (open === '<') return readMessage(tokens, '>', offset, depth + 1);
  const items: ValueNode[] = [];
  while (!tokens.skip(']')) {
    if (items.length > 0) tokens.expect(',');
    const isMessage = tokens.isNext('{') || tokens.isNext('<');
    items.push(isMessage ? readCollection(tokens, depth) : readScalar(tokens));
  }
  return { kind: 'list', offset, items };
}

function readScalar(tokens: TokenReader): ScalarNode {
  const { offset } = tokens.peek();
  const sign = tokens.skip('-') ? '-' : '';
  const { kind, text } = tokens.peek();
  if (kind === 'string' && sign === '') return readString(tokens, offset);
  if (kind !== 'number' && kind !== 'word') throw tokens.unexpected('a value');
  tokens.take();
  if (kind === 'word') return scalarNode(offset, 'word', sign + text);
  return scalarNode(offset, 'number', sign + decimal(text, offset), sign + text);
}

/** Neighbouring strings are one string, as in C. */
function readString(tokens: TokenReader, offset: number): ScalarNode {
  let bytes = '';
  while (tokens.peek().kind === 'string') bytes += tokens.take().text;
  return scalarNode(offset, 'string', bytes);
}

/** Hexadecimal and octal integers as decimal digits, floats without their suffix. */
function decimal(text: string, offset: number): string {
  if (/^0[xX]/.test(text)) return BigInt(text).toString();
  if (/^0[0-9]+$/.test(text)) {
    if (/[89]/.test(text)) throw new SyntaxFault('not valid text proto: malformed octal number', offset);
    return BigInt(`0o${text.slice(1)}`).toString();
  }
  return text.replace(/[fF]$/, '');
}
