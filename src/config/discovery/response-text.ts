// A DiscoveryResponse as JSON, as management servers answer by HTTP → a response whose resources are still to be read. Main thread,
// synchronous.

import { type ConfigFault, formatFault } from '../fault.ts';
import { FaultList } from '../fault-list.ts';
import { type AnyMessage, unpackAny } from '../proto/any.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { readMessage } from '../proto/load-message.ts';
import { type ProtoSchema, protoSchema } from '../proto/root.ts';
import type { UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import { durationMs } from '../resources/units.ts';
import { ConfigDocument } from '../source/config-document.ts';
import { fieldPath, itemPath } from '../source/field-path.ts';
import { parseBytes } from '../source/source.ts';
import type { DiscoveryService } from './discovery-services.ts';
import type { RawResource, RawResponse } from './exchange-responses.ts';
import { encodeContent, isError } from './read-resource.ts';
import { assignFaults, RESOURCES, RESPONSE_TYPE } from './response-faults.ts';

const RESOURCE = 'proxy.service.discovery.v3.Resource';
type Wrapper = MessageTypes[typeof RESOURCE];

/** What faults name in the place of a file. */
const NAME = 'response';

/**
 * @param service whose resources were asked for: that of the response, whatever it says of its type.
 * @returns `faults` where it is none, with line and column.
 */
export function openTextResponse(
  bytes: Uint8Array,
  service: DiscoveryService,
  unknownFields: UnknownFieldPolicy,
): (RawResponse & { readonly warnings: readonly string[] }) | { readonly faults: readonly string[] } {
  const schema = protoSchema();
  const opened = parseBytes(NAME, 'json', bytes);
  if ('fault' in opened) return { faults: [formatFault(opened.fault)] };
  const list = new FaultList();
  const read = readMessage(schema.messageType(RESPONSE_TYPE), opened.source, { faults: list, unknownFields, schema });
  const { ofResponse, byResource } = assignFaults(list.all);
  if (read === undefined || ofResponse.some(isError)) return { faults: list.all.filter(isError).map(formatFault) };
  const message = read.message as unknown as MessageTypes[typeof RESPONSE_TYPE];
  const place = { schema, service, document: new ConfigDocument(opened.source.layer) };
  return {
    typeUrl: message.type_url,
    service,
    version: message.version_info,
    nonce: message.nonce,
    controlPlane: message.control_plane?.identifier ?? '',
    resources: message.resources.map((any, at) =>
      textResource(any, itemPath(RESOURCES, at), byResource.get(at), place),
    ),
    removed: [],
    warnings: ofResponse.map(formatFault),
  };
}

interface Place {
  readonly schema: ProtoSchema;
  readonly service: DiscoveryService;
  readonly document: ConfigDocument;
}

/** A resource may come in a wrapper that says more of it. */
function textResource(any: AnyMessage, at: string, faults: readonly ConfigFault[] = [], place: Place): RawResource {
  const content = unpackAny(any);
  if (content?.type !== place.schema.messageType(RESOURCE)) return bareResource(any, at, faults, place);
  const { resource, name, version, ttl, resource_name: long } = content.message as unknown as Wrapper;
  const said = name || (long?.name ?? '');
  const ttlMs = ttl === null ? undefined : durationMs(ttl);
  if (resource === null) return { name: said, version, typeUrl: '', bytes: undefined, ttlMs };
  const inner = bareResource(resource, fieldPath(at, 'resource'), faults, place);
  const isOther = inner.name !== '' && said !== '' && inner.name !== said && !place.service.hasLongNames;
  return { ...inner, name: said || inner.name, version, ttlMs, ...(isOther && { otherName: inner.name }) };
}

function bareResource(
  any: AnyMessage,
  at: string,
  faults: readonly ConfigFault[],
  { schema, service, document }: Place,
): RawResource {
  const content = unpackAny(any);
  const isOfService = content !== undefined && content.type === schema.messageType(service.typeName);
  const name = isOfService ? String((content.message as unknown as Record<string, unknown>)[service.nameField]) : '';
  const opened = { content: isOfService ? content : undefined, at, faults, document };
  return { name, version: '', typeUrl: any.type_url, bytes: encodeContent(content), ttlMs: undefined, opened };
}
