// Which messages an operator can reach from a bootstrap through supported fields. The generated
// documentation lists exactly these, and a test holds the table against them.

import type { Field, Type } from 'protobufjs';
import { nestedMessage, verdictOn } from './check.ts';
import { type SupportTable, supportKey, type Verdict } from './verdict.ts';

export interface FieldCoverage {
  readonly field: Field;
  readonly verdict: Verdict;
}

export interface MessageCoverage {
  readonly key: string;
  readonly type: Type;
  readonly role: string;
  readonly fields: readonly FieldCoverage[];
}

/** In the order in which a reader of a bootstrap meets them, each once. */
export function coverageFrom(
  rootType: Type,
  table: SupportTable,
  messageType: (fullName: string) => Type,
): readonly MessageCoverage[] {
  const found = new Map<string, MessageCoverage>();
  const visit = (type: Type, role: string): void => {
    const key = supportKey(type.fullName.slice(1), role);
    if (found.has(key)) return;
    const fields = type.fieldsArray.map((field) => ({
      field: field.resolve() as Field,
      verdict: verdictOn(table, key, field.name),
    }));
    found.set(key, { key, type, role, fields });
    for (const { field, verdict } of fields) {
      const nested = nestedMessage(field);
      if (verdict.kind === 'supported' && !verdict.isWhole && nested !== undefined) visit(nested, verdict.role);
      if (verdict.kind === 'extension') for (const name of verdict.types) visit(messageType(name), '');
    }
  };
  visit(rootType, '');
  return [...found.values()];
}
