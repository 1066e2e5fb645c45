// A DiscoveryResponse in a file → resources of one type, held against the rules of their fields. Whatever is wrong with one of them
// refuses the whole response. Main thread, synchronous.

import { type ConfigFault, formatFault } from '../fault.ts';
import { FaultList } from '../fault-list.ts';
import { unpackAny } from '../proto/any.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { loadMessage } from '../proto/load-message.ts';
import { protoSchema } from '../proto/root.ts';
import { Validator } from '../proto/rules/validator.ts';
import type { UnknownFieldPolicy } from '../proto/unknown-fields.ts';
import { itemPath } from '../source/field-path.ts';

const RESPONSE_TYPE = 'proxy.service.discovery.v3.DiscoveryResponse';

export interface ReadResponse<Resource> {
  readonly version: string;
  readonly resources: readonly Resource[];
  readonly warnings: readonly string[];
}

const RULES = new Validator();

/**
 * @param typeName of the resources, a full message name.
 * @returns `faults` where it cannot be read, or holds what it may not.
 */
export function readResponseFile<TypeName extends keyof MessageTypes>(
  file: string,
  typeName: TypeName,
  unknownFields: UnknownFieldPolicy,
): ReadResponse<MessageTypes[TypeName]> | { readonly faults: readonly string[] } {
  const schema = protoSchema();
  const list = new FaultList();
  const input = { configPath: file, configYaml: '' };
  const loaded = loadMessage(schema.messageType(RESPONSE_TYPE), input, { faults: list, unknownFields, schema });
  if (loaded === undefined || list.hasErrors) return { faults: textsOf(list.all, 'error') };
  const { document } = loaded;
  const response = loaded.message as unknown as MessageTypes[typeof RESPONSE_TYPE];
  const resources: MessageTypes[TypeName][] = [];
  for (const [index, any] of response.resources.entries()) {
    const at = itemPath('resources', index);
    const content = unpackAny(any, schema);
    if (content?.type.fullName !== `.${typeName}`) {
      list.add(document.fault(at, `is no ${typeName}`, 'error'));
      continue;
    }
    RULES.validate(content, at, {
      report: (path, text) => list.add(document.fault(path, text, 'error')),
      unpack: (inner) => unpackAny(inner, schema),
    });
    resources.push(content.message as unknown as MessageTypes[TypeName]);
  }
  if (list.hasErrors) return { faults: textsOf(list.all, 'error') };
  return { version: response.version_info, resources, warnings: textsOf(list.all, 'warning') };
}

function textsOf(faults: readonly ConfigFault[], severity: ConfigFault['severity']): readonly string[] {
  return faults.filter((fault) => fault.severity === severity).map(formatFault);
}
