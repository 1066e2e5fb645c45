// What editors show of the fields of a bootstrap, beside their types: the comments of proto/, and what the support table says of
// each. For the declarations of the package only: the committed types would be older than the table with each of its rows.

import { readFileSync } from 'node:fs';
import type { Field, Type } from 'protobufjs';
import { buildOutput } from '../../src/base/package-root.ts';
import { protoSchema } from '../../src/config/proto/root.ts';
import { coverageFrom, type FieldRemarks, fieldRemarks, supportWith } from '../../src/config/support/index.ts';
import { EXTENSIONS } from '../../src/extensions/control-registry.ts';
import { renderBootstrapTypes } from '../bootstrap-types.mjs';

const BOOTSTRAP = 'proxy.config.bootstrap.v3.Bootstrap';
const fullName = (object: { readonly fullName: string }): string => object.fullName.slice(1);

/** Remarks on a field by the role in which its message is used. */
type RemarksByRole = ReadonlyMap<string, FieldRemarks>;

function remarksByField(): ReadonlyMap<string, RemarksByRole> {
  const schema = protoSchema();
  const messageType = (name: string): Type => schema.messageType(name);
  const found = new Map<string, Map<string, FieldRemarks>>();
  for (const { role, fields } of coverageFrom(messageType(BOOTSTRAP), supportWith(EXTENSIONS), messageType)) {
    for (const { field, verdict } of fields) {
      const name = fullName(field);
      found.set(name, (found.get(name) ?? new Map<string, FieldRemarks>()).set(role, fieldRemarks(verdict)));
    }
  }
  return found;
}

/** Said of all uses together where it is the same, else of each, named as in docs/config-support.md. */
function sentences(byRole: RemarksByRole): { readonly notes: readonly string[]; readonly against?: string } {
  const remarks = [...byRole.values()];
  const [first] = remarks;
  if (first === undefined) return { notes: [] };
  const text = (each: FieldRemarks): string => [...each.notes, each.against ?? ''].join(' ');
  if (remarks.every((each) => text(each) === text(first))) {
    return { notes: first.notes, ...(first.against === undefined ? {} : { against: first.against }) };
  }
  const notes = [...byRole].flatMap(([role, { notes, against }]) => {
    const said = against === undefined ? notes : [`${against}.`];
    return said.map((note) => `(${role || 'otherwise'}) ${note}`);
  });
  return { notes };
}

/** Text that cannot end the comment it stands in. */
const inComment = (text: string): string => text.replaceAll('*/', '*\u200b/');

/** The types of a bootstrap with what is to be said of each message and field. */
export function documentedBootstrapTypes(): string {
  const comments = JSON.parse(readFileSync(buildOutput('proto/comments.json'), 'utf8')) as Record<string, string>;
  const remarks = remarksByField();
  const ofField = (field: Field): readonly string[] => {
    const { notes, against } = sentences(remarks.get(fullName(field)) ?? new Map());
    const isDeprecated = field.options?.deprecated === true;
    const comment = comments[fullName(field)];
    const tag = against === undefined ? '@deprecated' : `@deprecated ${against}`;
    const lines = [...(comment === undefined ? [] : [comment]), ...notes];
    return [...lines, ...(isDeprecated || against !== undefined ? [tag] : [])].map(inComment);
  };
  const ofMessage = (type: Type): string | undefined => {
    const comment = comments[fullName(type)];
    return comment && inComment(comment);
  };
  return renderBootstrapTypes(protoSchema().root, { ofField, ofMessage });
}
