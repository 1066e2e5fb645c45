// Names of the options in proto/proxy/annotations.proto as protobufjs keeps them, and the type of their values.

export interface FieldOptions {
  /** Rule terms that must hold; see rules.ts. */
  readonly '(proxy.rule)'?: string;
  /** What v2 asked for where it differs, `none` for nothing. */
  readonly '(proxy.v2_rule)'?: string;
  /** The only generation that has the field. */
  readonly '(proxy.only)'?: 'v2' | 'v3';
  /** The field's name in v2, where it differs. */
  readonly '(proxy.v2_field)'?: string;
  /** A name from before v2 was frozen. */
  readonly '(proxy.alias)'?: string;
  /** v2 has one message where v3 has a list. */
  readonly '(proxy.v2_singular)'?: boolean;
  /** What becomes of a field that v2 dropped while it grew. */
  readonly '(proxy.removed)'?: 'keep' | 'ignore' | 'refuse';
  /** Not to be shown to anybody, nor what is in it. */
  readonly '(proxy.sensitive)'?: boolean;
  /** Name of a header: of some, the text beside it is not to be shown. */
  readonly '(proxy.names_header)'?: boolean;
  readonly deprecated?: boolean;
}

export interface MessageOptions {
  /** Full name in the v2 interface. */
  readonly '(proxy.v2_name)'?: string;
}

export interface OneofOptions {
  /** One member must be set. */
  readonly '(proxy.required)'?: boolean;
}
