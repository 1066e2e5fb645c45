// A DiscoveryResponse in a large file, read in a thread of its own: what that thread gives away is bytes, of which main makes resources
// one by one, when they are asked for. Text has to be read from its beginning, and as a tree is many times as large as its file.
//
//   digestResponse (any thread) ──bytes, faults──▶ openDigest (main, in slices) ──▶ OpenedResponse
//
// Trees of the text stay with it without their values: faults that are found later have their lines.

import { errorMessage } from '../../base/errors.ts';
import type { ConfigFault } from '../fault.ts';
import type { UnpackedAny } from '../proto/any.ts';
import { type UnknownFieldMode, UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import { ConfigDocument } from '../source/config-document.ts';
import type { ValueNode } from '../source/node.ts';
import { TreePacker } from '../source/packed-tree.ts';
import { nameOf, openFileResource, placeOf } from './file-resource.ts';
import { encodeContent, isError } from './read-resource.ts';
import { assignFaults, RESOURCES } from './response-faults.ts';
import { type ResponseContent, readResponseFile } from './response-file.ts';

/** What the thread is asked. */
export interface ReadingOrder {
  readonly file: string;
  readonly mode: UnknownFieldMode;
  /** Unknown fields that are known already. */
  readonly seen: readonly string[];
}

/** Plain data, of which the buffers may be handed over. */
export interface ResponseDigest {
  readonly faults: readonly ConfigFault[];
  /** Unknown fields that were met for the first time. */
  readonly metFields: readonly string[];
  /** Undefined where the response itself could not be read. */
  readonly parts: DigestParts | undefined;
}

export interface DigestParts {
  readonly version: string;
  /** Full names of the messages that resources are, without a leading dot. */
  readonly typeNames: readonly string[];
  /** Of each resource the numbers of `Column`. */
  readonly table: Uint32Array<ArrayBuffer>;
  /** Of each resource its name and its message. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly trees: Uint8Array<ArrayBuffer>;
  readonly keys: readonly string[];
  readonly lineStarts: Uint32Array<ArrayBuffer>;
  readonly textLength: number;
}

/** `type` and `tree` are greater by one than the places in `typeNames` and `trees`: 0 for none. */
export const Column = { type: 0, isOlder: 1, start: 2, nameLength: 3, length: 4, tree: 5, isWrapped: 6 } as const;
export const COLUMNS = 7;

/** The buffers of a digest. */
export function buffersOf({ parts }: ResponseDigest): ArrayBuffer[] {
  return parts === undefined
    ? []
    : [parts.table, parts.bytes, parts.trees, parts.lineStarts].map((view) => view.buffer);
}

export function digestResponse({ file, mode, seen }: ReadingOrder): ResponseDigest {
  const known = new Set(seen);
  const unknownFields = new UnknownFieldPolicy(mode, undefined, known);
  const { faults, content } = readResponseFile(file, unknownFields);
  const further: ConfigFault[] = [];
  const isReadable = content !== undefined && !assignFaults(faults).ofResponse.some(isError);
  const parts = isReadable ? digest(content, further) : undefined;
  const metFields = [...unknownFields.seen].filter((key) => !known.has(key));
  return { faults: [...faults, ...further], metFields, parts };
}

const NOTHING = new Uint8Array(0);

/** @param faults gets those of resources whose messages cannot be written down. */
function digest({ response, layer }: ResponseContent, faults: ConfigFault[]): DigestParts {
  const { resources } = response;
  const trees = new TreePacker();
  const items = itemsOf(layer.root);
  const document = new ConfigDocument(layer);
  const typeNames: string[] = [];
  const table = new Uint32Array(resources.length * COLUMNS);
  const pieces: Uint8Array[] = [];
  let start = 0;
  for (const [index, any] of resources.entries()) {
    const row = index * COLUMNS;
    const item = items[index];
    if (item !== undefined) {
      table[row + Column.tree] = trees.length + 1;
      trees.add(item);
    }
    const { content, isWrapped, faults: ofWrapper } = openFileResource(any, index);
    table[row + Column.isWrapped] = isWrapped ? 1 : 0;
    for (const { path, message: text, severity } of ofWrapper) faults.push(document.fault(path, text, severity));
    if (content === undefined) continue;
    const typeName = content.type.fullName.slice(1);
    if (!typeNames.includes(typeName)) typeNames.push(typeName);
    const message = encoded(content, placeOf(index, isWrapped), layer.source.name, faults);
    const name = Buffer.from(nameOf(content));
    pieces.push(name, message);
    table[row + Column.type] = typeNames.indexOf(typeName) + 1;
    table[row + Column.isOlder] = content.generation === 'v2' ? 1 : 0;
    table[row + Column.start] = start;
    table[row + Column.nameLength] = name.length;
    table[row + Column.length] = message.length;
    start += name.length + message.length;
  }
  const { lineStarts, length } = layer.source;
  return {
    version: response.version_info,
    typeNames,
    table,
    bytes: joined(pieces, start),
    trees: trees.finish(),
    keys: trees.keys,
    lineStarts: Uint32Array.from(lineStarts),
    textLength: length,
  };
}

/** The nodes of resources, in their order. */
function itemsOf(root: ValueNode | undefined): readonly ValueNode[] {
  if (root?.kind !== 'map') return [];
  // In text format each of them may stand behind the name of the list.
  const lists = root.entries.filter(({ key }) => key === RESOURCES);
  return lists.flatMap(({ value }) => (value.kind === 'list' ? value.items : [value]));
}

function encoded(content: UnpackedAny, path: string, file: string, faults: ConfigFault[]): Uint8Array {
  try {
    return encodeContent(content);
  } catch (error) {
    const message = `cannot be written down: ${errorMessage(error)}`;
    faults.push({ path, message, severity: 'error', file, line: 0, column: 0 });
    return NOTHING;
  }
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
