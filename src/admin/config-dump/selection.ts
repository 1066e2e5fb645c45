// What of the dumps is shown, as the parameters of /config_dump say: one list of them (resource), some fields (mask), resources by
// their names (name_regex), in all combinations.

import type { Regex } from '../../base/regex.ts';
import { isMaskOf, type MaskTree, type MessageType, maskPaths, maskTree } from '../../config/index.ts';
import { type Dump, type DumpItem, type DumpList, resourceType } from './dump.ts';

export interface DumpFilter {
  readonly resource: string | undefined;
  readonly mask: string | undefined;
  /** Found in the names of resources that are shown. */
  readonly name: Regex | undefined;
}

/** What stands in the list of the answer. */
export type Selection =
  | { readonly kind: 'dumps'; readonly dumps: readonly Dump[]; readonly mask: MaskTree | undefined }
  | {
      readonly kind: 'items';
      readonly type: MessageType;
      readonly items: Iterable<DumpItem>;
      readonly mask: MaskTree | undefined;
    };

export interface Refusal {
  readonly kind: 'refusal';
  readonly status: 400 | 404;
  readonly text: string;
}

export function select(dumps: readonly Dump[], { resource, mask, name }: DumpFilter): Selection | Refusal {
  const named = name === undefined ? dumps : dumps.map((dump) => ({ ...dump, lists: namedItems(dump.lists, name) }));
  // A mask without a path shows everything, as a message without a mask does.
  const asked = mask === undefined ? [] : maskPaths(mask);
  const paths = asked.length === 0 ? undefined : asked;
  return resource === undefined ? ofDumps(named, paths, mask) : ofResource(named, resource, paths);
}

function namedItems(lists: readonly DumpList[], name: Regex): DumpList[] {
  return lists.map(({ field, items }) => ({ field, items: matching(items, name) }));
}

function* matching(items: Iterable<DumpItem>, name: Regex): Generator<DumpItem, void, undefined> {
  for (const item of items) if (name.search(item.name)) yield item;
}

/** Dumps that do not have all of the fields are left out. */
function ofDumps(
  dumps: readonly Dump[],
  paths: readonly string[] | undefined,
  mask: string | undefined,
): Selection | Refusal {
  if (paths === undefined) return { kind: 'dumps', dumps, mask: undefined };
  const tree = maskTree(paths);
  const covered = dumps.filter(({ type }) => isMaskOf(type, paths, contentOf));
  if (covered.length === 0) return refusal(400, `FieldMask ${mask} could not be successfully applied to any configs.`);
  const shown = covered.map((dump) => ({ ...dump, lists: dump.lists.filter(({ field }) => tree.has(field)) }));
  return { kind: 'dumps', dumps: shown, mask: tree };
}

function ofResource(
  dumps: readonly Dump[],
  resource: string,
  paths: readonly string[] | undefined,
): Selection | Refusal {
  const dump = dumps.find(({ type }) => Object.hasOwn(type.fields, resource));
  if (dump === undefined) return refusal(404, `${resource} not found in config dump`);
  const list = dump.lists.find(({ field }) => field === resource);
  if (list === undefined) {
    return refusal(400, `${resource} is not a repeated field. Use ?mask=${resource} to get only this field`);
  }
  const type = dump.type.fields[resource]!.resolve().resolvedType as MessageType;
  if (paths === undefined) return { kind: 'items', type, items: list.items, mask: undefined };
  if (isMaskOf(type, paths, contentOf)) return { kind: 'items', type, items: list.items, mask: maskTree(paths) };
  const mask = paths.map((path) => `paths: ${JSON.stringify(path)}\n`).join('');
  return refusal(400, `FieldMask ${mask} could not be successfully used.`);
}

function contentOf(_holder: MessageType, field: string): MessageType | undefined {
  return resourceType(field);
}

function refusal(status: Refusal['status'], text: string): Refusal {
  return { kind: 'refusal', status, text };
}
