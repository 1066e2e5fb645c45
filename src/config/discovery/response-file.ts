// A DiscoveryResponse in a file → resources of one type, each for itself: what is wrong with one of them does not keep the others
// from being used. Main thread, synchronous; each resource is read when it is asked for, so that the caller can rest between two.

import { type ConfigFault, formatFault } from '../fault.ts';
import { FaultList } from '../fault-list.ts';
import type { AnyMessage } from '../proto/any.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { readMessage } from '../proto/load-message.ts';
import { protoSchema } from '../proto/root.ts';
import type { UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import { ConfigDocument, type DocumentLayer } from '../source/config-document.ts';
import { openFile } from '../source/source.ts';
import type { DiscoveredResponse, OfferedResource } from './discovered-response.ts';
import { openFileResource, placeOf } from './file-resource.ts';
import { fingerprintOf } from './fingerprint.ts';
import { encodeContent, isError, type OpenedResource, readResource } from './read-resource.ts';
import { ResourceIndex } from './resource-index.ts';
import type { ResourceType } from './resource-type.ts';
import { assignFaults, RESPONSE_TYPE } from './response-faults.ts';

/** A response for all who want some of it. */
export interface OpenedResponse {
  /** Of the response itself, with file and line. */
  readonly warnings: readonly string[];
  /** @param wanted only of these; undefined for all. */
  of<Resource>(type: ResourceType<Resource>, wanted?: ReadonlySet<string>): DiscoveredResponse<Resource>;
}

/** As `openResponse`, for one who wants resources of one type. */
export function openResponseFile<Resource>(
  file: string,
  type: ResourceType<Resource>,
  unknownFields: UnknownFieldPolicy,
  wanted?: ReadonlySet<string>,
): DiscoveredResponse<Resource> | { readonly faults: readonly string[] } {
  const opened = openResponse(file, unknownFields);
  return 'faults' in opened ? opened : opened.of(type, wanted);
}

/** @returns `faults` where the response itself cannot be read, with file and line. */
export function openResponse(
  file: string,
  unknownFields: UnknownFieldPolicy,
): OpenedResponse | { readonly faults: readonly string[] } {
  const { faults, content } = readResponseFile(file, unknownFields);
  const { ofResponse, byResource } = assignFaults(faults);
  if (content === undefined || ofResponse.some(isError)) return { faults: faults.filter(isError).map(formatFault) };
  const { response } = content;
  const document = new ConfigDocument(content.layer);
  const warnings = ofResponse.map(formatFault);
  const indexes = new Map<string, ResourceIndex<OpenedResource>>();
  return {
    warnings,
    of(type, wanted) {
      let index = indexes.get(type.typeName);
      if (index === undefined) {
        index = new ResourceIndex();
        for (const resource of openedResources(response.resources, type, document, byResource)) index.add(resource);
        indexes.set(type.typeName, index);
      }
      const concerned = index.concernedOf(wanted);
      return {
        version: response.version_info,
        extent: 'all',
        removed: [],
        names: concerned.map(({ name }) => name),
        warnings,
        *offered() {
          for (const resource of concerned) yield offer(resource, type);
        },
      };
    },
  };
}

export interface ResponseContent {
  readonly response: MessageTypes[typeof RESPONSE_TYPE];
  /** Where it says what. */
  readonly layer: DocumentLayer;
}

/** @returns with no content where not even its syntax could be read. */
export function readResponseFile(
  file: string,
  unknownFields: UnknownFieldPolicy,
): { readonly faults: readonly ConfigFault[]; readonly content: ResponseContent | undefined } {
  const opened = openFile(file);
  if ('fault' in opened) return { faults: [opened.fault], content: undefined };
  const { source } = opened;
  const schema = protoSchema();
  const faults = new FaultList();
  const read = readMessage(schema.messageType(RESPONSE_TYPE), source, { faults, unknownFields, schema });
  const response = read?.message as unknown as ResponseContent['response'] | undefined;
  return { faults: faults.all, content: response && { response, layer: source.layer } };
}

function offer<Resource>(opened: OpenedResource, type: ResourceType<Resource>): OfferedResource<Resource> {
  const { name, content, faults } = opened;
  let message: Uint8Array | undefined;
  const encoded = (): Uint8Array => {
    message ??= encodeContent(content);
    return message;
  };
  return {
    name,
    // What was met in opening it is not part of the message.
    fingerprint: () =>
      content === undefined || faults.length > 0 ? undefined : fingerprintOf(type, content.generation, encoded()),
    read: () => readResource(opened, type, encoded()),
  };
}

function* openedResources(
  resources: readonly AnyMessage[],
  type: ResourceType<unknown>,
  document: ConfigDocument,
  faults: ReadonlyMap<number, readonly ConfigFault[]>,
): Generator<OpenedResource> {
  for (const [index, any] of resources.entries()) {
    const { content: found, isWrapped, faults: ofWrapper } = openFileResource(any, index);
    const content = found?.type.fullName === `.${type.typeName}` ? found : undefined;
    const name = content === undefined ? '' : type.nameOf(content.message);
    const placed = ofWrapper.map(({ path, message, severity }) => document.fault(path, message, severity));
    yield { name, content, at: placeOf(index, isWrapped), faults: [...(faults.get(index) ?? []), ...placed], document };
  }
}
