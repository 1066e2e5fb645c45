// Reads configuration text as the loader does, and shows what a test compares: the message or the faults as
// an operator sees them.

import type { Message } from 'protobufjs/light.js';
import { formatFault } from '../../../src/config/fault.ts';
import { FaultList } from '../../../src/config/fault-list.ts';
import { type LoadedMessage, readMessage } from '../../../src/config/proto/load-message.ts';
import type { Generation } from '../../../src/config/proto/message-names.ts';
import { protoSchema } from '../../../src/config/proto/root.ts';
import { UnknownFieldPolicy } from '../../../src/config/proto/unknown-fields.ts';
import { ConfigDocument } from '../../../src/config/source/config-document.ts';
import { parseBytes } from '../../../src/config/source/source.ts';

export type Form = 'yaml' | 'json' | 'text' | 'binary';

export interface ReadText {
  readonly message: Message & Record<string, unknown>;
  readonly faults: readonly string[];
  readonly generation: Generation;
  readonly document: LoadedMessage['document'];
}

export interface ReadTextOptions {
  readonly form?: Form;
  readonly generation?: Generation;
  readonly unknownFields?: UnknownFieldPolicy;
}

/** @param typeName without the leading `proxy.`, or a well-known type in full. */
export function readText(typeName: string, text: string | Uint8Array, options: ReadTextOptions = {}): ReadText {
  const { form = 'yaml', generation = 'v3', unknownFields = new UnknownFieldPolicy('reject') } = options;
  const opened = parseBytes(`test.${form}`, form, Buffer.from(text));
  if ('fault' in opened) throw new Error(formatFault(opened.fault));
  const faults = new FaultList();
  const name = typeName.startsWith('google.') || typeName.startsWith('xds.') ? typeName : `proxy.${typeName}`;
  const type = protoSchema().messageType(name);
  const read = readMessage(type, opened.source, { faults, unknownFields, generation });
  return {
    message: (read?.message ?? {}) as ReadText['message'],
    faults: faults.all.map(formatFault),
    generation: read?.generation ?? generation,
    document: new ConfigDocument(opened.source.layer),
  };
}
