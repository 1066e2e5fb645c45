// What another thread has made of a DiscoveryResponse in a large file → resources of one type, each for itself. Main thread, in slices
// until it is opened; each resource is read when it is asked for.

import { TimeSlice } from '../../base/time-slice.ts';
import { type ConfigFault, formatFault } from '../fault.ts';
import type { UnpackedAny } from '../proto/any.ts';
import { protoSchema } from '../proto/root.ts';
import { decodeMessage } from '../proto/wire.ts';
import { ConfigDocument, type DocumentLayer } from '../source/config-document.ts';
import type { ValueNode } from '../source/node.ts';
import { unpackTree } from '../source/packed-tree.ts';
import { SourceLines } from '../source/source-text.ts';
import type { OfferedResource } from './discovered-response.ts';
import { placeOf } from './file-resource.ts';
import { fingerprintOf } from './fingerprint.ts';
import { isError, readResource } from './read-resource.ts';
import { ResourceIndex } from './resource-index.ts';
import type { ResourceType } from './resource-type.ts';
import { COLUMNS, Column, type DigestParts, type ResponseDigest } from './response-digest.ts';
import { assignFaults, RESOURCES } from './response-faults.ts';
import type { OpenedResponse } from './response-file.ts';

/** One of a digest, by its row. */
interface Row {
  readonly index: number;
  /** Empty where it is of another type than somebody asks for. */
  readonly name: string;
}

/** @returns as `openResponse`. */
export async function openDigest(
  file: string,
  { faults, parts }: ResponseDigest,
): Promise<OpenedResponse | { readonly faults: readonly string[] }> {
  if (parts === undefined) return { faults: faults.filter(isError).map(formatFault) };
  const { ofResponse, byResource } = assignFaults(faults);
  const digest = new OpenedDigest(file, parts, byResource);
  const indexes = await digest.indexes();
  const warnings = ofResponse.map(formatFault);
  return {
    warnings,
    of(type, wanted) {
      const index = indexes.get(type.typeName) ?? digest.strangers();
      indexes.set(type.typeName, index);
      const concerned = index.concernedOf(wanted);
      return {
        version: parts.version,
        extent: 'all',
        removed: [],
        names: concerned.map(({ name }) => name),
        warnings,
        *offered() {
          for (const row of concerned) yield digest.offer(row, type);
        },
      };
    },
  };
}

class OpenedDigest {
  readonly #parts: DigestParts;
  readonly #faults: ReadonlyMap<number, readonly ConfigFault[]>;
  readonly #source: SourceLines;
  readonly #text: Buffer;
  readonly #count: number;

  constructor(file: string, parts: DigestParts, faults: ReadonlyMap<number, readonly ConfigFault[]>) {
    this.#parts = parts;
    this.#faults = faults;
    this.#source = new SourceLines(file, parts.textLength, parts.lineStarts);
    this.#text = Buffer.from(parts.bytes.buffer);
    this.#count = parts.table.length / COLUMNS;
  }

  /** By type, for all that there are here. */
  async indexes(): Promise<Map<string, ResourceIndex<Row>>> {
    const slice = new TimeSlice();
    const indexes = new Map<string, ResourceIndex<Row>>();
    for (const [at, typeName] of this.#parts.typeNames.entries()) {
      const index = new ResourceIndex<Row>();
      for (let row = 0; row < this.#count; row += 1) {
        index.add({ index: row, name: this.#number(row, 'type') === at + 1 ? this.#nameOf(row) : '' });
        if (slice.isOver()) await slice.rest();
      }
      indexes.set(typeName, index);
    }
    return indexes;
  }

  /** Of a type of which there are none. */
  strangers(): ResourceIndex<Row> {
    const index = new ResourceIndex<Row>();
    for (let row = 0; row < this.#count; row += 1) index.add({ index: row, name: '' });
    return index;
  }

  offer<Resource>({ index, name }: Row, type: ResourceType<Resource>): OfferedResource<Resource> {
    const faults = this.#faults.get(index) ?? [];
    const at = placeOf(index, this.#number(index, 'isWrapped') === 1);
    const isOfType = this.#typeNameOf(index) === type.typeName;
    const generation = this.#number(index, 'isOlder') === 0 ? 'v3' : 'v2';
    let copy: Uint8Array | undefined;
    // Whoever keeps a part of the bytes would keep all of them.
    const message = (): Uint8Array => {
      copy ??= isOfType ? this.#messageOf(index).slice() : NOTHING;
      return copy;
    };
    const content = (): UnpackedAny | undefined => {
      if (!isOfType) return undefined;
      const messageType = protoSchema().messageType(type.typeName);
      return { type: messageType, message: decodeMessage(messageType, message()), generation };
    };
    return {
      name,
      // What was met in opening it is not part of the message.
      fingerprint: () =>
        isOfType && faults.length === 0 ? fingerprintOf(type, generation, this.#messageOf(index)) : undefined,
      read: () =>
        readResource({ name, content: content(), at, faults, document: this.#documentOf(index) }, type, message()),
    };
  }

  #number(row: number, column: keyof typeof Column): number {
    return this.#parts.table[row * COLUMNS + Column[column]]!;
  }

  #typeNameOf(row: number): string | undefined {
    return this.#parts.typeNames[this.#number(row, 'type') - 1];
  }

  #nameOf(row: number): string {
    const start = this.#number(row, 'start');
    return this.#text.toString('utf8', start, start + this.#number(row, 'nameLength'));
  }

  #messageOf(row: number): Uint8Array {
    const start = this.#number(row, 'start') + this.#number(row, 'nameLength');
    return this.#parts.bytes.subarray(start, start + this.#number(row, 'length'));
  }

  /** Made of what there is of it when somebody asks for a place. */
  #documentOf(row: number): ConfigDocument {
    const { trees, keys } = this.#parts;
    const place = this.#number(row, 'tree') - 1;
    const tree = (): ValueNode | undefined => (place < 0 ? undefined : unpackTree(trees, place, keys));
    return new ConfigDocument(new LayerOfResource(this.#source, row, tree));
  }
}

const NOTHING = new Uint8Array(0);

/** A response of which nothing is known but one of its resources. */
class LayerOfResource implements DocumentLayer {
  readonly source: SourceLines;
  readonly #index: number;
  readonly #tree: () => ValueNode | undefined;

  constructor(source: SourceLines, index: number, tree: () => ValueNode | undefined) {
    this.source = source;
    this.#index = index;
    this.#tree = tree;
  }

  get root(): ValueNode | undefined {
    const tree = this.#tree();
    if (tree === undefined) return undefined;
    const items: ValueNode[] = [];
    items[this.#index] = tree;
    const value: ValueNode = { kind: 'list', offset: -1, items };
    return { kind: 'map', offset: -1, entries: [{ key: RESOURCES, offset: -1, value }] };
  }
}
