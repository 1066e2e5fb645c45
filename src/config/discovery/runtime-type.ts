// Runtime layers that come by discovery.

import { unpackAny } from '../proto/any.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { Validator } from '../proto/rules/validator.ts';
import type { ResourceType } from './resource-type.ts';

const TYPE_NAME = 'proxy.service.runtime.v3.Runtime';

export type RuntimeResource = MessageTypes[typeof TYPE_NAME];

const RULES = new Validator();

export const RUNTIME_TYPE: ResourceType<RuntimeResource> = {
  typeName: TYPE_NAME,
  nameOf: (message) => (message as RuntimeResource).name,
  scope: '',
  read: (content, at, faults) => {
    RULES.validate(content, at, { report: (path, text) => faults.error(path, text), unpack: (any) => unpackAny(any) });
    return { resource: content.message as unknown as RuntimeResource, deprecatedFields: new Map(), standsAlone: true };
  },
};
