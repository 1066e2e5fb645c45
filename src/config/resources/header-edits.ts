// The request_headers_to_add / _to_remove fields of one level, and those for responses → HeaderEdits.

import type { HeaderAddition, HeaderAppendAction, HeaderEdits } from '../../snapshot/index.ts';
import { HeaderValueOption_HeaderAppendAction as AppendAction } from '../proto/generated/enums.ts';
import { quote } from '../source/node.ts';
import type { Conversion } from './conversion.ts';
import type { FaultSink } from './fault-sink.ts';
import { parseFormat } from './format/format-string.ts';
import type { HeaderMutation, HeaderValue, HeaderValueOption } from './messages.ts';

/** The fields that tables, virtual hosts, routes and weighted clusters have in common. */
export interface HeaderEditFields {
  readonly request_headers_to_add: readonly HeaderValueOption[];
  readonly request_headers_to_remove: readonly string[];
  readonly response_headers_to_add: readonly HeaderValueOption[];
  readonly response_headers_to_remove: readonly string[];
}

export interface BothHeaderEdits {
  readonly request: HeaderEdits | null;
  readonly response: HeaderEdits | null;
}

const ACTIONS: Readonly<Record<number, HeaderAppendAction>> = {
  [AppendAction.APPEND_IF_EXISTS_OR_ADD]: 'append',
  [AppendAction.ADD_IF_ABSENT]: 'add-if-absent',
  [AppendAction.OVERWRITE_IF_EXISTS_OR_ADD]: 'overwrite',
  [AppendAction.OVERWRITE_IF_EXISTS]: 'overwrite-if-present',
};
/** They say where a message ends; an edited one would let the next message begin somewhere else. */
const FRAMING: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding']);
/** Each connection has its own; they are never handed on, and the proxy writes them itself. */
const CONNECTION: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'proxy-connection', 'upgrade']);

export function convertHeaderEdits(message: HeaderEditFields, at: string, conversion: Conversion): BothHeaderEdits {
  return {
    request: editsOf(message, 'request', at, conversion),
    response: editsOf(message, 'response', at, conversion),
  };
}

function editsOf(
  message: HeaderEditFields,
  direction: 'request' | 'response',
  at: string,
  conversion: Conversion,
): HeaderEdits | null {
  const addField = `${direction}_headers_to_add` as const;
  const removeField = `${direction}_headers_to_remove` as const;
  const add = additionsOf(message[addField], `${at}.${addField}`, conversion);
  const remove: string[] = [];
  for (const [index, written] of message[removeField].entries()) {
    const name = written.toLowerCase();
    if (mayEdit(name, 'removed', `${at}.${removeField}[${index}]`, conversion.faults) && !CONNECTION.has(name))
      remove.push(name);
  }
  return add.length + remove.length === 0 ? null : { remove, add };
}

/** Of a list that only adds. @returns null when nothing will be added. */
export function convertHeaderAdditions(
  options: readonly HeaderValueOption[],
  at: string,
  conversion: Conversion,
): HeaderEdits | null {
  const add = additionsOf(options, at, conversion);
  return add.length === 0 ? null : { remove: [], add };
}

function additionsOf(options: readonly HeaderValueOption[], at: string, conversion: Conversion): HeaderAddition[] {
  return options
    .map((option, index) => convertAddition(option, `${at}[${index}]`, conversion))
    .filter((addition) => addition !== undefined);
}

/** @returns one level for each mutation, since each sees what those before it have done. */
export function convertHeaderMutations(
  messages: readonly HeaderMutation[],
  at: string,
  conversion: Conversion,
): readonly HeaderEdits[] {
  return messages.flatMap((message, index): readonly HeaderEdits[] => {
    const place = `${at}[${index}]`;
    if (message.append !== null) {
      const addition = convertAddition(message.append, `${place}.append`, conversion);
      return addition === undefined ? [] : [{ remove: [], add: [addition] }];
    }
    const name = message.remove.toLowerCase();
    const isEdited = mayEdit(name, 'removed', `${place}.remove`, conversion.faults) && !CONNECTION.has(name);
    return isEdited ? [{ remove: [name], add: [] }] : [];
  });
}

/** @returns undefined when nothing will be added; a fault says why. */
function convertAddition(
  option: HeaderValueOption,
  at: string,
  { faults, environment }: Conversion,
): HeaderAddition | undefined {
  const { header } = option;
  if (header === null) return undefined;
  const name = header.key.toLowerCase();
  if (!mayEdit(name, 'set', `${at}.header.key`, faults)) return undefined;
  if (CONNECTION.has(name)) {
    faults.warning(`${at}.header.key`, `${quote(name)} belongs to one connection; it is not added`);
    return undefined;
  }
  const format = parseFormat(valueBytes(header), environment);
  if (format.error !== undefined) {
    faults.error(`${at}.header.value`, format.error);
    return undefined;
  }
  return {
    name,
    value: format.segments,
    action: actionOf(option, at, faults),
    keepsEmptyValue: option.keep_empty_value,
  };
}

/** The value as it will lie on the wire: one character per byte. */
function valueBytes({ value, raw_value: raw }: HeaderValue): string {
  return (value === '' ? Buffer.from(raw) : Buffer.from(value)).toString('latin1');
}

function actionOf(option: HeaderValueOption, at: string, faults: FaultSink): HeaderAppendAction {
  const action = ACTIONS[option.append_action] ?? 'append';
  if (option.append === null) return action;
  if (action !== 'append') faults.error(`${at}.append`, 'cannot be given together with append_action');
  return option.append.value ? 'append' : 'overwrite';
}

function mayEdit(name: string, verb: string, at: string, faults: FaultSink): boolean {
  let reason: string | undefined;
  if (name === 'host') reason = 'the host has its own rewrites';
  else if (name.startsWith(':')) reason = 'it is no header field';
  else if (FRAMING.has(name)) reason = 'it frames the message';
  if (reason === undefined) return true;
  faults.error(at, `${quote(name)} cannot be ${verb} here: ${reason}`);
  return false;
}
