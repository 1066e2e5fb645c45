// What a message is held against before it is converted, wherever it comes from: the rules of its fields, and the table of what this
// build supports.

import { type UnpackedAny, unpackAny } from './proto/any.ts';
import type { ProtoSchema } from './proto/root.ts';
import { Validator } from './proto/rules/validator.ts';
import type { ExtensionManifests } from './resources/extension-manifests.ts';
import type { FaultSink } from './resources/fault-sink.ts';
import { type DeprecatedFields, type DisabledExtensions, SupportCheck, supportWith } from './support/index.ts';

/** Both compile what they check, so there is one pair for each schema and set of extensions. */
const checksOf = new WeakMap<ProtoSchema, WeakMap<ExtensionManifests, ResourceChecks>>();

export class ResourceChecks {
  readonly #schema: ProtoSchema;
  readonly #rules = new Validator();
  readonly #support: SupportCheck;

  static of(schema: ProtoSchema, extensions: ExtensionManifests): ResourceChecks {
    const byExtensions = checksOf.get(schema) ?? new WeakMap<ExtensionManifests, ResourceChecks>();
    checksOf.set(schema, byExtensions);
    let checks = byExtensions.get(extensions);
    if (checks === undefined) {
      checks = new ResourceChecks(schema, extensions);
      byExtensions.set(extensions, checks);
    }
    return checks;
  }

  private constructor(schema: ProtoSchema, extensions: ExtensionManifests) {
    this.#schema = schema;
    this.#support = new SupportCheck(supportWith(extensions), (name) => schema.messageType(name));
  }

  /** @param at path of the message, empty for the root. @returns what is set of deprecated fields. */
  check(content: UnpackedAny, at: string, faults: FaultSink, disabled: DisabledExtensions): DeprecatedFields {
    this.#rules.validate(content, at, {
      report: (path, text) => faults.error(path, text),
      unpack: (any) => unpackAny(any, this.#schema),
    });
    return this.#support.check(content.type.fullName.slice(1), content.message, at, faults, disabled);
  }
}
