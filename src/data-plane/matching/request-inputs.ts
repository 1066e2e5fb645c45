// Inputs of decision trees that a request has, and those of the connection that it came by.

import type { MatchInput } from '../../snapshot/index.ts';
import { headerReader } from '../route/header-matcher.ts';
import { decodedQueryValue } from '../route/query-matcher.ts';
import type { RouteRequest } from '../route/route-request.ts';
import { CONNECTION_INPUTS, constant, metadataText, sourceType, stateText } from './connection-inputs.ts';
import type { InputReaders, ReadInput } from './match-tree.ts';

export const REQUEST_INPUTS: InputReaders<RouteRequest> = {
  text: readerOf,
  metadata: ({ sender }) => sender?.dynamicMetadata,
};

function readerOf(input: MatchInput): ReadInput<RouteRequest> {
  switch (input.kind) {
    case 'request-header':
      return headerReader(input.name);
    case 'query-parameter':
      return ({ query }) => decodedQueryValue(query, input.name);
    case 'dynamic-metadata':
      return ({ sender }) => metadataText(sender?.dynamicMetadata, input);
    case 'filter-state':
      return ({ sender }) => stateText(sender?.state(input.key));
    case 'constant':
      return constant(input.value);
    case 'source-ip':
      return ({ sender }) => sender?.clientAddress || undefined;
    case 'source-type':
      return ({ sender }) => sender?.clientAddress && sourceType(sender.clientAddress, sender.connectionEnds.local.ip);
    default: {
      const read = CONNECTION_INPUTS.text(input);
      return ({ sender }) => (sender === null ? undefined : read(sender.connectionEnds));
    }
  }
}
