// What docs/cluster.md says of a field beside its support.

/** What it does; its default; the test that shows it, where that is not the test of the whole message. */
export type FieldNote = readonly [what: string, byDefault: string, test?: string];

export interface MessageNotes {
  /** Markdown ahead of the table: what holds for several fields, or takes more than a line. */
  readonly about?: string;
  /** Shows the fields that name no other. */
  readonly test: string;
  readonly fields: Readonly<Record<string, FieldNote>>;
}
