// Public names of the support table.

export { type DeprecatedFields, SupportCheck } from './check.ts';
export { coverageFrom, type FieldCoverage, type MessageCoverage } from './coverage.ts';
export { type DisabledExtensions, IS_DISABLED, NONE_DISABLED } from './disabled-extensions.ts';
export { supportWith } from './extension-rows.ts';
export { type FieldRemarks, fieldRemarks } from './remarks.ts';
export { SUPPORT } from './table/index.ts';
export type { MessageSupport, SupportTable, Verdict } from './verdict.ts';
