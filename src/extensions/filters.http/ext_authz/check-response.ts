// What a gRPC service answers: a CheckResponse of the authorization service, v2 and v3 alike.

import { utf8Bytes } from '../../../base/byte-text.ts';
import type { JsonObject } from '../../../base/json.ts';
import type { FieldAction, FieldEdit } from '../field-edits.ts';
import { type FieldReader, readMessage } from '../grpc/wire.ts';
import type { Verdict } from './verdict.ts';

const FORBIDDEN = 403;
/** Of HeaderAppendAction, by number; what is not there is set. */
const ACTIONS: readonly FieldAction[] = ['set', 'add-if-absent', 'set', 'set-if-present'];

interface Answer {
  code: number;
  status: number;
  body: Buffer;
  readonly edits: FieldEdit[];
  readonly removed: string[];
  readonly parameters: [name: string, value: string | null][];
  readonly denial: FieldEdit[];
  readonly success: FieldEdit[];
  metadata: JsonObject | null;
  /** From before there was `metadata`; counts more. */
  olderMetadata: JsonObject | null;
}

/** @throws Error for bytes that are no such message. */
export function decodeCheckResponse(bytes: Buffer): Verdict {
  const answer: Answer = {
    code: 0,
    status: FORBIDDEN,
    body: Buffer.alloc(0),
    edits: [],
    removed: [],
    parameters: [],
    denial: [],
    success: [],
    metadata: null,
    olderMetadata: null,
  };
  readMessage(bytes, (field, reader) => {
    if (field === 1) {
      reader.message((part) => {
        if (part !== 1) return false;
        answer.code = reader.integer();
        return true;
      });
    } else if (field === 2) readDenied(reader, answer);
    else if (field === 3) readOk(reader, answer);
    else if (field === 4) answer.metadata = reader.struct();
    else return false;
    return true;
  });
  const metadata = answer.olderMetadata ?? answer.metadata;
  if (answer.code !== 0) {
    return { kind: 'denied', status: answer.status, body: answer.body, response: answer.denial, metadata };
  }
  const { edits, removed, parameters, success: response } = answer;
  return { kind: 'ok', edits, removed, parameters, response, metadata };
}

function readDenied(reader: FieldReader, answer: Answer): void {
  reader.message((field) => {
    if (field === 1) {
      reader.message((part) => {
        if (part !== 1) return false;
        answer.status = reader.integer() || FORBIDDEN;
        return true;
      });
    } else if (field === 2) answer.denial.push(readEdit(reader, 'append'));
    else if (field === 3) answer.body = reader.bytes();
    else return false;
    return true;
  });
}

function readOk(reader: FieldReader, answer: Answer): void {
  reader.message((field) => {
    if (field === 2) answer.edits.push(readEdit(reader, 'append-if-present'));
    else if (field === 3) answer.olderMetadata = reader.struct();
    else if (field === 5) answer.removed.push(utf8Bytes(reader.text()).toLowerCase());
    else if (field === 6) answer.success.push(readEdit(reader, 'append'));
    else if (field === 7) answer.parameters.push(readParameter(reader));
    else if (field === 8) answer.parameters.push([reader.text(), null]);
    else return false;
    return true;
  });
}

/** A HeaderValueOption. @param appended what `append` asks for. */
function readEdit(reader: FieldReader, appended: FieldAction): FieldEdit {
  let name = '';
  let value = '';
  let isAppended = false;
  let action = 0;
  reader.message((field) => {
    if (field === 1) {
      reader.message((part) => {
        if (part === 1) name = utf8Bytes(reader.text()).toLowerCase();
        else if (part === 2 || part === 3) value = reader.bytes().toString('latin1') || value;
        else return false;
        return true;
      });
    } else if (field === 2) {
      reader.message((part) => {
        if (part !== 1) return false;
        isAppended = reader.integer() !== 0;
        return true;
      });
    } else if (field === 3) action = reader.integer();
    else return false;
    return true;
  });
  return { name, value, action: isAppended ? appended : (ACTIONS[action] ?? 'set') };
}

function readParameter(reader: FieldReader): [name: string, value: string] {
  let name = '';
  let value = '';
  reader.message((field) => {
    if (field === 1) name = reader.text();
    else if (field === 2) value = reader.text();
    else return false;
    return true;
  });
  return [name, value];
}
