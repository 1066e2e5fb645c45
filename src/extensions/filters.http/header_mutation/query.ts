// Changes of a query, on the text of it: parameters that nobody changes stay as they were written, in their order. Names are
// compared decoded; what is written is encoded where it would mean something else otherwise.

import { type FactsSource, TextFormatter } from '../../../data-plane/index.ts';
import type { QueryMutation } from './settings.ts';

interface Parameter {
  readonly name: string;
  /** As it stands in the query. */
  readonly text: string;
}

/** Changes a list in place. */
type Edit = (parameters: Parameter[], source: FactsSource) => void;

/** The path with its query changed; the same text where nothing is. */
export type EditQuery = (path: string, source: FactsSource) => string;

/** What ends a name or a value, or may not stand in a request line. */
const UNSAFE = /[^\w\-.~!$'()*,;:@/?]/g;

/** @returns null when there is nothing to change. */
export function compileQueryMutations(mutations: readonly QueryMutation[]): EditQuery | null {
  if (mutations.length === 0) return null;
  const edits = mutations.map(compileMutation);
  return (path, source) => {
    const mark = path.indexOf('?');
    const bare = mark === -1 ? path : path.slice(0, mark);
    const parameters = mark === -1 ? [] : parametersOf(path.slice(mark + 1));
    for (const edit of edits) edit(parameters, source);
    return parameters.length === 0 ? bare : `${bare}?${parameters.map(({ text }) => text).join('&')}`;
  };
}

function compileMutation(mutation: QueryMutation): Edit {
  const { name } = mutation;
  if (mutation.kind === 'remove') return (parameters) => removeNamed(parameters, name);
  const { action } = mutation;
  const format = new TextFormatter(mutation.value, { missing: '' });
  return (parameters, source) => {
    const isThere = parameters.some((parameter) => parameter.name === name);
    if (action === 'add-if-absent' && isThere) return;
    if (action === 'overwrite-if-present' && !isThere) return;
    if (action === 'overwrite' || action === 'overwrite-if-present') removeNamed(parameters, name);
    parameters.push({ name, text: `${encode(name)}=${encode(format.render(source.facts))}` });
  };
}

function removeNamed(parameters: Parameter[], name: string): void {
  const rest = parameters.filter((parameter) => parameter.name !== name);
  parameters.splice(0, parameters.length, ...rest);
}

function parametersOf(query: string): Parameter[] {
  const texts = query.split('&').filter((text) => text !== '');
  return texts.map((text) => ({ name: decode(text.split('=', 1)[0]!), text }));
}

/** Byte text; what is no escape stays. */
function decode(text: string): string {
  return text.replace(/%([0-9a-fA-F]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}

function encode(text: string): string {
  return text.replace(UNSAFE, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
}
