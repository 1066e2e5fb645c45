// Holds configurations against the schema that editors get (--print-schema).

import { readFileSync } from 'node:fs';
import { Ajv, type ErrorObject } from 'ajv';
import { load as readYaml } from 'js-yaml';
import { buildOutput } from '../../src/base/package-root.ts';
import { bootstrapSchema, type ProtoComments, protoSchema } from '../../src/config/index.ts';
import { EXTENSIONS } from '../../src/extensions/control-registry.ts';

export type SchemaFaults = (configuration: unknown) => readonly string[];

/** What a schema says of a configuration: `/static_resources/clusters/0 must NOT have additional properties: nam`. */
export function schemaFaults(schema: object): SchemaFaults {
  // What editors understand beside the standard is unknown to it.
  const validate = new Ajv({ strict: false, inlineRefs: false }).compile(schema);
  return (configuration) => (validate(configuration) ? [] : (validate.errors ?? []).map(faultText));
}

function faultText({ instancePath, message = '', params }: ErrorObject): string {
  const { additionalProperty } = params as { readonly additionalProperty?: string };
  return `${instancePath} ${message}${additionalProperty === undefined ? '' : `: ${additionalProperty}`}`;
}

export function ownSchema(): object {
  const comments = JSON.parse(readFileSync(buildOutput('proto/comments.json'), 'utf8')) as ProtoComments;
  return bootstrapSchema(protoSchema(), { extensions: EXTENSIONS, comments });
}

let own: SchemaFaults | undefined;

/** @throws when a configuration that weir takes is none by the schema. @param text YAML or JSON. */
export function assertInSchema(text: string): void {
  own ??= schemaFaults(ownSchema());
  const faults = own(readYaml(text));
  if (faults.length > 0) throw new Error(`not in the schema for editors: ${faults.join('; ')}\n${text}`);
}
