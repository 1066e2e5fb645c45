// The kinds of parameters that endpoints take. A parameter knows what /help and forms show of it, and reads its value from
// a query: absent and empty are the same, except for flags. What it refuses is answered with 400 and a text.

import type { AdminContext } from './endpoint.ts';
import type { AdminQuery } from './query.ts';
import { type AdminResponse, textResponse } from './response.ts';

export interface ParameterSource {
  readonly name: string;
  readonly query: AdminQuery;
  readonly context: AdminContext;
  /** Names of all parameters of the endpoint. */
  readonly known: ReadonlySet<string>;
}

export type ReadParameter<Value> =
  | { readonly value: Value; readonly refusal?: undefined }
  | { readonly refusal: AdminResponse; readonly value?: undefined };

export interface Parameter<Value> {
  /** How a form asks for it. */
  readonly kind: 'flag' | 'text' | 'choice' | 'pairs';
  readonly help: string;
  /** What /help and forms offer, the default first; empty for other kinds than choices. */
  readonly choices: readonly string[];
  /** Stands for the name where that is the caller's. */
  readonly label?: string;
  readonly read: (source: ParameterSource) => ReadParameter<Value>;
}

export type ListedParameter = Parameter<unknown> & { readonly name: string };
export type Parameters = Readonly<Record<string, Parameter<unknown>>>;

/** What a handler gets: the value of each parameter by its name. */
export type Arguments<Row extends Parameters> = {
  readonly [Name in keyof Row]: Row[Name] extends Parameter<infer Value> ? Value : never;
};

/** True when it is given, with whatever value. */
export function flag(help: string): Parameter<boolean> {
  return { kind: 'flag', help, choices: [], read: ({ query, name }) => ({ value: query.flag(name) }) };
}

/** Any text; undefined when it is not given. */
export function text(help: string): Parameter<string | undefined> {
  return { kind: 'text', help, choices: [], read: ({ query, name }) => ({ value: query.value(name) }) };
}

export type Parsed<Value> =
  | { readonly value: Value; readonly error?: undefined }
  /** The whole body of the refusal. */
  | { readonly error: string; readonly value?: undefined };

/** A text that means something; undefined when it is not given. */
export function parsed<Value>(
  help: string,
  parse: (given: string, context: AdminContext) => Parsed<Value>,
): Parameter<Value | undefined> {
  return {
    kind: 'text',
    help,
    choices: [],
    read({ query, name, context }) {
      const given = query.value(name);
      if (given === undefined) return { value: undefined };
      const { value, error } = parse(given, context);
      return error === undefined ? { value } : { refusal: textResponse(error, 400) };
    },
  };
}

interface ChoiceOptions<Value extends string> {
  readonly help: string;
  /** The first is taken when none is given. */
  readonly values: readonly [Value, ...Value[]];
  /** Other spellings, which are not listed. */
  readonly aliases?: Readonly<Record<string, Value>>;
  /** Body of the answer to any other value; without it the default is taken instead. */
  readonly refusal?: string | ((context: AdminContext, given: string) => string | AdminResponse);
  /** There is no default: without a value the answer is the refusal. */
  readonly isRequired?: boolean;
}

/** One of some values. */
export function choice<const Value extends string>(options: ChoiceOptions<Value>): Parameter<Value> {
  const { help, values, aliases = {}, refusal, isRequired = false } = options;
  return {
    kind: 'choice',
    help,
    choices: values,
    read({ query, name, context }) {
      const given = query.value(name) ?? (isRequired ? '' : values[0]);
      const alias = Object.hasOwn(aliases, given) ? aliases[given] : undefined;
      const value = values.find((known) => known === given) ?? alias;
      if (value !== undefined) return { value };
      if (refusal === undefined) return { value: values[0] };
      const answer = typeof refusal === 'string' ? refusal : refusal(context, given);
      return { refusal: typeof answer === 'string' ? textResponse(answer, 400) : answer };
    },
  };
}

export type Pairs = readonly (readonly [name: string, value: string])[];

/** Names that the caller makes up, with their values: every pair of the query that is no other parameter's. */
export function pairs(label: string, help: string): Parameter<Pairs> {
  return {
    kind: 'pairs',
    label,
    help,
    choices: [],
    read: ({ query, known }) => ({ value: query.pairs.filter(([name]) => !known.has(name)) }),
  };
}
