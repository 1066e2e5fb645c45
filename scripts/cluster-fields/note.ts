// What docs/cluster.md says of a field beside its support.

/** What it does; its default; the test that shows it, where that is not the test of the whole message. */
export type FieldNote = readonly [what: string, byDefault: string, test?: string];

export interface MessageNotes {
  /** Shows the fields that name no other. */
  readonly test: string;
  readonly fields: Readonly<Record<string, FieldNote>>;
}
