// A resource as a management server has sent it → settings, or why it may not be. Main thread, synchronous.

import type { ConfigFault } from '../fault.ts';
import { FaultList } from '../fault-list.ts';
import type { UnpackedAny } from '../proto/any.ts';
import { readMessage } from '../proto/load-message.ts';
import { protoSchema } from '../proto/root.ts';
import type { UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import { ConfigDocument, type DocumentLayer } from '../source/config-document.ts';
import { SourceText } from '../source/source-text.ts';
import type { DiscoveredResource, OfferedResource } from './discovered-response.ts';
import type { RawResource } from './exchange-responses.ts';
import { rawFingerprintOf } from './fingerprint.ts';
import { readResource } from './read-resource.ts';
import type { ResourceType } from './resource-type.ts';

/** Faults have no place but the field. */
export const NOWHERE: DocumentLayer = { source: new SourceText('', ''), root: undefined };

/** @param at as of `readRawResource`. */
export function offerRawResource<Resource>(
  resource: RawResource,
  at: string,
  type: ResourceType<Resource>,
  unknownFields: UnknownFieldPolicy,
): OfferedResource<Resource> {
  const { name, version, aliases, opened } = resource;
  return {
    name,
    ...(aliases && { aliases }),
    ...(version !== '' && { version }),
    // What was met in opening it is not part of the message.
    fingerprint: () => ((opened?.faults ?? []).length > 0 ? undefined : rawFingerprintOf(type, resource)),
    read: () => readRawResource(resource, at, type, unknownFields),
  };
}

/** @param at its place in the response. */
export function readRawResource<Resource>(
  resource: RawResource,
  at: string,
  type: ResourceType<Resource>,
  unknownFields: UnknownFieldPolicy,
): DiscoveredResource<Resource> {
  const { name, version, opened: text } = resource;
  const list = new FaultList();
  const content = text === undefined ? open(resource, type, list, unknownFields) : text.content;
  if (resource.otherName !== undefined) {
    const message = `is named ${JSON.stringify(resource.otherName)}, and comes as ${JSON.stringify(name)}`;
    list.add({ path: '', message, severity: 'error', file: '', line: 0, column: 0 });
  }
  const faults = [...list.all.map((fault) => within(fault, at)), ...(text?.faults ?? [])];
  const opened = { name, content, at: text?.at ?? at, faults, document: text?.document ?? new ConfigDocument(NOWHERE) };
  return readResource(version === '' ? opened : { ...opened, version }, type);
}

/** @returns undefined for another type; and for bytes that are none, with a fault. */
function open(
  { typeUrl, bytes = new Uint8Array(0) }: RawResource,
  { typeName }: ResourceType<unknown>,
  faults: FaultList,
  unknownFields: UnknownFieldPolicy,
): UnpackedAny | undefined {
  const found = protoSchema().find(typeUrl);
  if (found?.type.fullName !== `.${typeName}`) return undefined;
  const { type, generation } = found;
  const read = readMessage(type, { dialect: 'binary', layer: NOWHERE, bytes }, { faults, unknownFields, generation });
  return read && { type, message: read.message, generation };
}

function within(fault: ConfigFault, at: string): ConfigFault {
  return { ...fault, path: fault.path === '' ? at : `${at}.${fault.path}` };
}
