// Field masks: which fields of a message are shown. A mask is a list of paths, separated by commas; a path names a field, or with
// dots a field of a field. Lists end a path. Source: google/protobuf/field_mask.proto.

import type { Type } from 'protobufjs/light.js';
import { messageTypeOf } from '../message-plan.ts';

/** By the name of a field: all of it, or these of its fields. */
export type MaskTree = ReadonlyMap<string, MaskTree | 'whole'>;

type GrowingTree = Map<string, GrowingTree | 'whole'>;

const ANY = '.google.protobuf.Any';

/** The message in an Any by the field that holds it, so that paths can go on in it; undefined where anything may be there. */
export type AnyContent = (holder: Type, field: string) => Type | undefined;

export function maskPaths(text: string): string[] {
  return text.split(',').filter((path) => path !== '');
}

/** Whether every path names a field of a message of the type. */
export function isMaskOf(type: Type, paths: readonly string[], contentOf: AnyContent): boolean {
  return paths.every((path) => isPathOf(type, path, contentOf));
}

function isPathOf(type: Type, path: string, contentOf: AnyContent): boolean {
  let holder: Type | undefined = type;
  for (const name of path.split('.')) {
    const field = holder !== undefined && Object.hasOwn(holder.fields, name) ? holder.fields[name] : undefined;
    if (holder === undefined || field === undefined) return false;
    const next = messageTypeOf(field.resolve());
    if (field.repeated || field.map) holder = undefined;
    else holder = next?.fullName === ANY ? contentOf(holder, name) : next;
  }
  return true;
}

export function maskTree(paths: readonly string[]): MaskTree {
  const tree: GrowingTree = new Map();
  for (const path of paths) {
    const names = path.split('.');
    const last = names.pop()!;
    let at: GrowingTree | 'whole' = tree;
    for (const name of names) {
      if (at === 'whole') break;
      let next = at.get(name);
      if (next === undefined) {
        next = new Map();
        at.set(name, next);
      }
      at = next;
    }
    if (at !== 'whole') at.set(last, 'whole');
  }
  return tree;
}
