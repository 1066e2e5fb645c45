// GET /config_dump as JSON: an admin.v3.ConfigDump message. Made piece by piece, as the client takes it.

import { TimeSlice } from '../../base/time-slice.ts';
import { type MaskTree, type MessageType, messageJson, protoSchema } from '../../config/index.ts';
import type { Dump, DumpItem } from '../config-dump/dump.ts';
import type { Selection } from '../config-dump/selection.ts';

/** Levels around a dump, and around an item of one of its lists. */
const DUMP_INDENT = 2;
const ITEM_INDENT = 4;

export async function* configDumpJson(selection: Selection): AsyncGenerator<string, void, undefined> {
  const slice = new TimeSlice();
  // Some of a few pieces each: what is sent in one go should be worth it.
  let text = '';
  let isEmpty = true;
  const { mask } = selection;
  const configs = selection.kind === 'dumps' ? dumpsJson(selection.dumps, mask) : itemsJson(selection, DUMP_INDENT);
  for await (const piece of configs) {
    if (isEmpty) text = '{\n "configs": [\n  ';
    isEmpty = false;
    text += piece;
    if (text.length < SEND_CHARS && !slice.isOverNow()) continue;
    yield text;
    text = '';
    if (slice.isOverNow()) await slice.rest();
  }
  yield isEmpty ? '{}\n' : `${text}\n ]\n}\n`;
}

const SEND_CHARS = 64 * 1024;

async function* dumpsJson(dumps: readonly Dump[], mask: MaskTree | undefined): AsyncGenerator<string, void, undefined> {
  const line = `\n${' '.repeat(DUMP_INDENT)}`;
  let before = '';
  for (const { type, head, lists } of dumps) {
    yield before;
    before = `,${line}`;
    yield* opened(type, head, mask, `${line}}`);
    for (const { field, items } of lists) {
      let end = '';
      for await (const piece of itemsJson(
        { items, type: itemType(type, field), mask: undefined, isAny: false },
        ITEM_INDENT,
      )) {
        if (end === '') yield `,${line} ${JSON.stringify(field)}: [${line}  `;
        end = `${line} ]`;
        yield piece;
      }
      yield end;
    }
    yield `${line}}`;
  }
}

/** A message with its type, without its end. */
function* opened(
  type: MessageType,
  head: Uint8Array,
  mask: MaskTree | undefined,
  end: string,
): Generator<string, void, undefined> {
  let last = '';
  for (const piece of messageJson(protoSchema(), type, head, { indent: DUMP_INDENT, mask, isAny: true })) {
    yield last;
    last = piece;
  }
  yield last.slice(0, -end.length);
}

interface ShownItems {
  readonly items: Iterable<DumpItem>;
  readonly type: MessageType;
  readonly mask: MaskTree | undefined;
  /** Each with its type. */
  readonly isAny?: boolean;
}

async function* itemsJson(
  { items, type, mask, isAny = true }: ShownItems,
  indent: number,
): AsyncGenerator<string, void, undefined> {
  let before = '';
  for (const { message } of items) {
    if (before !== '') yield before;
    before = `,\n${' '.repeat(indent)}`;
    yield* messageJson(protoSchema(), type, await message(), { indent, mask, isAny });
  }
}

function itemType(type: MessageType, field: string): MessageType {
  return type.fields[field]!.resolve().resolvedType as MessageType;
}
