import type { Field, Root, Type } from 'protobufjs';

export interface Documentation {
  ofMessage(type: Type): string | undefined;
  /** Lines. */
  ofField(field: Field): readonly string[];
}

export function renderBootstrapTypes(root: Root, documentation?: Documentation): string;
