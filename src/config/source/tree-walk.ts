// Follows a field path through a value tree. The path speaks of the message as it is in memory; the tree is
// what somebody wrote. They differ in spelling (lowerCamelCase, names of the older generation) and in shape
// (opaque structs, TypedStruct, an expanded Any in text proto), and the differences are settled here.

import { lowerCamelCase } from '../proto/field-names.ts';
import { MapKey, type PathSegment } from './field-path.ts';
import { entryOf, type MapEntry, type MapNode, type ValueNode } from './node.ts';

export interface WalkResult {
  readonly offset: number;
  readonly found: number;
  readonly written: readonly PathSegment[];
}

/** Names under which the older generation wrote what the message holds under a newer name. */
const OLDER_NAMES: Readonly<Record<string, string>> = {
  typed_config: 'config',
  typed_per_filter_config: 'per_filter_config',
  typed_extension_protocol_options: 'extension_protocol_options',
  host_rewrite_literal: 'host_rewrite',
  host_rewrite_header: 'auto_host_rewrite_header',
};

interface Step {
  readonly node: ValueNode;
  readonly offset: number;
  /** Set when the source spells the field by its older name. */
  readonly name?: string;
}

/** Goes as far along `segments` as the tree reaches. */
export function walkTree(root: ValueNode, segments: readonly PathSegment[]): WalkResult {
  const written = [...segments];
  let node = root;
  let offset = root.offset;
  for (const [index, segment] of segments.entries()) {
    const step = stepInto(node, segment);
    if (step === undefined) return { offset, found: index, written };
    node = step.node;
    offset = step.offset;
    if (step.name !== undefined) written[index] = step.name;
  }
  return { offset, found: segments.length, written };
}

function stepInto(node: ValueNode, segment: PathSegment): Step | undefined {
  if (typeof segment === 'number') return stepIntoItem(node, segment);
  if (segment instanceof MapKey) return stepIntoMapKey(node, segment.key);
  return node.kind === 'map' ? stepIntoField(node, segment) : undefined;
}

function stepIntoItem(node: ValueNode, index: number): Step | undefined {
  // In text proto a list of one is written like a single value.
  const item = node.kind === 'list' ? node.items[index] : index === 0 ? node : undefined;
  return item === undefined ? undefined : { node: item, offset: item.offset };
}

function stepIntoField(map: MapNode, field: string): Step | undefined {
  const own = stepIntoKey(map, field) ?? stepIntoKey(map, lowerCamelCase(field));
  if (own !== undefined) return own;
  const older = OLDER_NAMES[field];
  if (older !== undefined) {
    const step = stepIntoKey(map, older) ?? stepIntoKey(map, lowerCamelCase(older));
    if (step !== undefined) return { ...step, name: older };
  }
  const wrapped = wrappedMessage(map);
  return wrapped === undefined ? undefined : stepIntoField(wrapped, field);
}

/** The message inside a TypedStruct or inside an expanded Any. */
function wrappedMessage(map: MapNode): MapNode | undefined {
  const [first] = map.entries;
  const isExpandedAny = map.entries.length === 1 && first!.key.startsWith('[');
  const value = isExpandedAny ? first!.value : entryOf(map, '@type') && entryOf(map, 'value')?.value;
  return value?.kind === 'map' ? value : undefined;
}

function stepIntoKey(map: MapNode, key: string): Step | undefined {
  const entries = map.entries.filter((entry) => entry.key === key);
  const [first] = entries;
  if (first === undefined) return undefined;
  if (entries.length === 1) return { node: first.value, offset: entryOffset(first) };
  // A repeated field of text proto: its values together are the list.
  const items = entries.flatMap(({ value }) => (value.kind === 'list' ? value.items : [value]));
  return { node: { kind: 'list', offset: first.offset, items }, offset: first.offset };
}

/** A scalar is shown at its value, a collection at its key. */
function entryOffset(entry: MapEntry): number {
  return entry.value.kind === 'scalar' && entry.value.offset >= 0 ? entry.value.offset : entry.offset;
}

function stepIntoMapKey(node: ValueNode, key: string): Step | undefined {
  if (node.kind === 'map') {
    const own = stepIntoKey(node, key);
    if (own !== undefined) return own;
  }
  // Text proto writes a map as a list of messages with a key and a value.
  const items = node.kind === 'list' ? node.items : [node];
  for (const item of items) {
    if (item.kind !== 'map') continue;
    const name = entryOf(item, 'key')?.value;
    const value = entryOf(item, 'value');
    if (name?.kind === 'scalar' && name.text === key && value !== undefined) {
      return { node: value.value, offset: entryOffset(value) };
    }
  }
  return undefined;
}
