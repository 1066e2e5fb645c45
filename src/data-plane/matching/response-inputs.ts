// Inputs of decision trees that a response has, and those of the request that it answers.

import type { MatchInput } from '../../snapshot/index.ts';
import type { FormatFacts } from '../format/facts.ts';
import type { EditableHead } from '../route/header-editor.ts';
import { decodedQueryValue } from '../route/query-matcher.ts';
import { CONNECTION_INPUTS, constant, metadataText, sourceType, stateText } from './connection-inputs.ts';
import type { InputReaders, ReadInput } from './match-tree.ts';

/** A response whose head may still be edited. */
export interface MatchedResponse {
  readonly head: EditableHead;
  readonly status: number;
  /** Of its request. */
  readonly facts: FormatFacts;
}

export const RESPONSE_INPUTS: InputReaders<MatchedResponse> = {
  text: readerOf,
  metadata: ({ facts }) => facts.metadata('DYNAMIC'),
};

function readerOf(input: MatchInput): ReadInput<MatchedResponse> {
  switch (input.kind) {
    case 'response-header':
      return ({ head }) => head.headerByName(input.name);
    case 'response-status':
      return ({ status }) => String(status);
    case 'response-status-class':
      return ({ status }) => `${Math.trunc(status / 100)}xx`;
    case 'request-header':
      return ({ facts }) => facts.requestHeader(input.name);
    case 'query-parameter':
      return ({ facts }) => decodedQueryValue(queryOf(facts.requestHeader(':path')), input.name);
    case 'dynamic-metadata':
      return ({ facts }) => metadataText(facts.metadata('DYNAMIC'), input);
    case 'filter-state':
      return ({ facts }) => stateText(facts.state(input.key));
    case 'constant':
      return constant(input.value);
    case 'source-ip':
      return ({ facts }) => facts.client.ip || undefined;
    case 'source-type':
      return ({ facts }) => sourceType(facts.client.ip, facts.downstream.local.ip);
    default: {
      const read = CONNECTION_INPUTS.text(input);
      return ({ facts }) => read(facts.downstream);
    }
  }
}

function queryOf(target = ''): string | undefined {
  const mark = target.indexOf('?');
  return mark === -1 ? undefined : target.slice(mark + 1);
}
