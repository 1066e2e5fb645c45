// The words in which the support table speaks. A row says whether this build implements a field; when it
// does not, what the presence of the field amounts to:
//   rejected  the field would change where traffic goes or who may see it, so serving without it would lie
//   warned    the field only changes how well, how robustly or how observably the proxy serves
// A field left at its default never gets a complaint.

import type { FaultSeverity } from '../fault.ts';

/** Implemented, or without effect in this build in a way that cannot surprise; `note` says which. */
export interface SupportedVerdict {
  readonly kind: 'supported';
  readonly note: string;
  /** Role in which a shared message type is used here; selects the row set `<type> (<role>)`. */
  readonly role: string;
  /** The field is accepted with all that is in it; the messages below need no rows. */
  readonly isWhole: boolean;
}

/** Implemented for some values only: enum names, or the plain values of booleans, numbers and strings. */
export interface LimitedVerdict {
  readonly kind: 'limited';
  readonly accepts: readonly (string | boolean | number)[];
  readonly severity: FaultSeverity;
  readonly note: string;
}

/** An Any that may hold the listed messages. */
export interface ExtensionVerdict {
  readonly kind: 'extension';
  /** Every other extension is refused, left out with a warning, or left to the conversion, which reports it. */
  readonly severity: FaultSeverity | 'left';
  /** Full names of message types. */
  readonly types: readonly string[];
  /** Extensions that take no settings, by their names behind `proxy.` or `envoy.`. */
  readonly names: readonly string[];
  /** The name beside the field is that of no extension: there may be no settings, or empty ones. */
  readonly isOptional: boolean;
  readonly note: string;
}

export interface UnsupportedVerdict {
  readonly kind: 'unsupported';
  readonly severity: FaultSeverity;
  readonly note: string;
}

export type Verdict = SupportedVerdict | LimitedVerdict | ExtensionVerdict | UnsupportedVerdict;

export interface MessageSupport {
  /** Verdict on every field without a row of its own. */
  readonly otherwise: Verdict;
  readonly fields: Readonly<Record<string, Verdict>>;
}

/** Keys are full message names, or `<message name> (<role>)`. */
export type SupportTable = Readonly<Record<string, MessageSupport>>;

export function supported(note = ''): SupportedVerdict {
  return { kind: 'supported', note, role: '', isWhole: false };
}

/** Supported with everything inside it. */
export function supportedWhole(note = ''): SupportedVerdict {
  return { kind: 'supported', note, role: '', isWhole: true };
}

/** Supported by the rows that the table holds for this use of the message type. */
export function supportedAs(role: string, note = ''): SupportedVerdict {
  return { kind: 'supported', note, role, isWhole: false };
}

/** For Any fields whose conversion reports extensions beyond `types`; `note` says what becomes of them. */
export function extensionsElseLeft(types: readonly string[], note: string): ExtensionVerdict {
  return { kind: 'extension', severity: 'left', types, names: [], isOptional: false, note };
}

export function warned(note = ''): UnsupportedVerdict {
  return { kind: 'unsupported', severity: 'warning', note };
}

export function rejected(note = ''): UnsupportedVerdict {
  return { kind: 'unsupported', severity: 'error', note };
}

/** For Any fields: the extensions that this build has. */
export function extensions(types: readonly string[], names: readonly string[] = []): ExtensionVerdict {
  return { kind: 'extension', severity: 'error', types, names, isOptional: false, note: '' };
}

/** Settings for what is named otherwise, which not all of those have. */
export function settingsOf(types: readonly string[]): ExtensionVerdict {
  return { ...extensions(types), isOptional: true };
}

/** Extensions beyond `types` are warned of and left out; `note` says what that means. */
export function extensionsElseWarned(types: readonly string[], note: string): ExtensionVerdict {
  return { kind: 'extension', severity: 'warning', types, names: [], isOptional: false, note };
}

/** Values beyond `accepts` are refused. */
export function only(accepts: readonly (string | boolean | number)[], note = ''): LimitedVerdict {
  return { kind: 'limited', accepts, severity: 'error', note };
}

/** Values beyond `accepts` are warned of and ignored. */
export function onlyElseWarned(accepts: readonly (string | boolean | number)[], note = ''): LimitedVerdict {
  return { kind: 'limited', accepts, severity: 'warning', note };
}

/** Key of the row set for a message type used in a role. */
export function supportKey(typeName: string, role: string): string {
  return role === '' ? typeName : `${typeName} (${role})`;
}
