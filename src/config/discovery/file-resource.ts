// What stands in a list of resources of a file: each as it is, or in a wrapper, as management servers send them.

import type { ConfigFault } from '../fault.ts';
import { type AnyMessage, type UnpackedAny, unpackAny } from '../proto/any.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { fieldPath, itemPath } from '../source/field-path.ts';
import { quote } from '../source/node.ts';
import { DISCOVERY_SERVICES } from './discovery-services.ts';
import { RESOURCES } from './response-faults.ts';

const WRAPPER = 'proxy.service.discovery.v3.Resource';

export interface FileResource {
  /** Undefined where it cannot be opened. */
  readonly content: UnpackedAny | undefined;
  readonly isWrapped: boolean;
  /** What is to be said of the wrapper; none for most. */
  readonly faults: readonly Pick<ConfigFault, 'path' | 'message' | 'severity'>[];
}

/** @param index in the list. */
export function openFileResource(any: AnyMessage, index: number): FileResource {
  const content = unpackAny(any);
  if (content?.type.fullName !== `.${WRAPPER}`) return { content, isWrapped: false, faults: [] };
  const { resource, name, ttl } = content.message as unknown as MessageTypes[typeof WRAPPER];
  const inner = resource === null ? undefined : unpackAny(resource);
  const at = itemPath(RESOURCES, index);
  const faults: FileResource['faults'][number][] = [];
  if (ttl !== null) {
    const message = 'is not gone by in a file: what it holds stays until there is another file';
    faults.push({ path: fieldPath(at, 'ttl'), message, severity: 'warning' });
  }
  const own = nameOf(inner);
  if (name !== '' && own !== '' && name !== own) {
    const message = `${quote(name)} is not the name of what is in it, ${quote(own)}`;
    faults.push({ path: fieldPath(at, 'name'), message, severity: 'error' });
  }
  return { content: inner, isWrapped: true, faults };
}

/** Of what is in the list at this place. */
export function placeOf(index: number, isWrapped: boolean): string {
  const at = itemPath(RESOURCES, index);
  return isWrapped ? fieldPath(at, 'resource') : at;
}

/** By whatever field of its message names it; empty for one that nobody can ask for. */
export function nameOf(content: UnpackedAny | undefined): string {
  const service = DISCOVERY_SERVICES.find(({ typeName }) => `.${typeName}` === content?.type.fullName);
  if (content === undefined || service === undefined) return '';
  return String((content.message as unknown as Record<string, unknown>)[service.nameField]);
}
