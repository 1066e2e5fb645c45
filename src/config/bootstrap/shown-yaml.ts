// The text of --config-yaml as it may be shown: as it is, or, where it holds secrets, as JSON without them.

import { FaultList } from '../fault-list.ts';
import { messageJson } from '../proto/json-text/message-json.ts';
import { REDACTED } from '../proto/json-text/redaction.ts';
import { readMessage } from '../proto/load-message.ts';
import { protoSchema } from '../proto/root.ts';
import { UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import { encodeMessage } from '../proto/wire-parts.ts';
import { openConfigYaml } from '../source/source.ts';
import { BOOTSTRAP_TYPE } from './load.ts';

/** @returns nothing of a text that is no bootstrap. */
export function shownConfigYaml(text: string): string {
  if (text === '') return '';
  const opened = openConfigYaml(text);
  const type = protoSchema().messageType(BOOTSTRAP_TYPE);
  const options = { faults: new FaultList(), unknownFields: new UnknownFieldPolicy('ignore') };
  const read = 'fault' in opened ? undefined : readMessage(type, opened.source, options);
  if (read === undefined) return '';
  const json = [...messageJson(protoSchema(), type, encodeMessage(type, read.message))].join('');
  return json.includes(REDACTED) || json.includes(REDACTED_BASE64) ? `${json}\n` : text;
}

const REDACTED_BASE64 = Buffer.from(REDACTED).toString('base64');
