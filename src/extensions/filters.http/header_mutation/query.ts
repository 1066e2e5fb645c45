// Changes of a query: parameters that nobody changes stay as they were written, in their order. Names are compared decoded;
// what is written is encoded where it would mean something else otherwise.

import { type FactsSource, TextFormatter } from '../../../data-plane/index.ts';
import { QueryParameters } from '../query-parameters.ts';
import type { QueryMutation } from './settings.ts';

type Edit = (parameters: QueryParameters, source: FactsSource) => void;

/** The path with its query changed; the same text where nothing is. */
export type EditQuery = (path: string, source: FactsSource) => string;

/** @returns null when there is nothing to change. */
export function compileQueryMutations(mutations: readonly QueryMutation[]): EditQuery | null {
  if (mutations.length === 0) return null;
  const edits = mutations.map(compileMutation);
  return (path, source) => {
    const parameters = new QueryParameters(path);
    for (const edit of edits) edit(parameters, source);
    return parameters.target();
  };
}

function compileMutation(mutation: QueryMutation): Edit {
  const { name } = mutation;
  if (mutation.kind === 'remove') return (parameters) => parameters.remove(name);
  const { action } = mutation;
  const format = new TextFormatter(mutation.value, { missing: '' });
  return (parameters, source) => {
    const isThere = parameters.has(name);
    if (action === 'add-if-absent' && isThere) return;
    if (action === 'overwrite-if-present' && !isThere) return;
    if (action === 'overwrite' || action === 'overwrite-if-present') parameters.remove(name);
    parameters.add(name, format.render(source.facts));
  };
}
