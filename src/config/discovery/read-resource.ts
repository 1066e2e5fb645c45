// One resource of a response → settings, or why it may not be. Main thread, synchronous.

import { DocumentFaults } from '../bootstrap/document-faults.ts';
import { type ConfigFault, formatFault } from '../fault.ts';
import { FaultList } from '../fault-list.ts';
import type { UnpackedAny } from '../proto/any.ts';
import { encodeMessage } from '../proto/wire-parts.ts';
import type { ConfigDocument } from '../source/config-document.ts';
import type { DiscoveredResource } from './discovered-response.ts';
import type { ResourceType } from './resource-type.ts';

const NOTHING = new Uint8Array(0);

/** One that was found in a response. */
export interface OpenedResource {
  readonly name: string;
  /** Undefined where it is of no type that was asked for. */
  readonly content: UnpackedAny | undefined;
  readonly at: string;
  /** Met when the response was read. */
  readonly faults: readonly ConfigFault[];
  readonly document: ConfigDocument;
  /** As of DiscoveredResource. */
  readonly version?: string;
}

/** Holds it against its rules, and converts it. @param message its content in binary form. */
export function readResource<Resource>(
  { name, content, at, faults: met, document, version }: OpenedResource,
  type: ResourceType<Resource>,
  message: Uint8Array = encodeContent(content),
): DiscoveredResource<Resource> {
  const identity = version === undefined ? { name } : { name, version };
  const list = new FaultList();
  list.addAll(met);
  const faults = new DocumentFaults(document, list);
  if (content === undefined && !list.hasErrors) faults.error(at, `is no ${type.typeName}`);
  const read = content && type.read(content, at, faults);
  const warnings = list.all.filter((fault) => !isError(fault)).map(formatFault);
  if (list.hasErrors || read?.resource === undefined) {
    return { isGood: false, ...identity, message, warnings, errors: list.all.filter(isError).map(formatFault) };
  }
  return {
    isGood: true,
    ...identity,
    message,
    warnings,
    resource: read.resource,
    deprecatedFields: read.deprecatedFields,
    standsAlone: read.standsAlone && warnings.length === 0 && read.deprecatedFields.size === 0,
  };
}

export function encodeContent(content: UnpackedAny | undefined): Uint8Array {
  return content === undefined ? NOTHING : encodeMessage(content.type, content.message);
}

export function isError({ severity }: ConfigFault): boolean {
  return severity === 'error';
}
