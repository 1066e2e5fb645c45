// HeaderMutation and HeaderMutationPerRoute messages → settings of the header_mutation filter.

import { isForbiddenTrailer } from '../../../base/forbidden-trailers.ts';
import {
  type Conversion,
  convertHeaderMutations,
  type HttpFilterManifest,
  type MessageTypes,
  parseFormat,
  rejected,
  supported,
} from '../../../config/index.ts';
import type { FormatSegments, HeaderAppendAction, HeaderEdits } from '../../../snapshot/index.ts';
import type { HeaderMutationSettings, Mutations, QueryMutation } from './settings.ts';

const PACKAGE = 'proxy.extensions.filters.http.header_mutation.v3';
const CORE = 'proxy.config.core.v3';

type MutationsMessage = MessageTypes['proxy.extensions.filters.http.header_mutation.v3.Mutations'];
type HeaderMutationMessage = MessageTypes['proxy.extensions.filters.http.header_mutation.v3.HeaderMutation'];
type PerRouteMessage = MessageTypes['proxy.extensions.filters.http.header_mutation.v3.HeaderMutationPerRoute'];
type KeyValueMutation = MessageTypes['proxy.config.core.v3.KeyValueMutation'];
type KeyValueAppend = MessageTypes['proxy.config.core.v3.KeyValueAppend'];

const NOTHING: Mutations = { request: [], query: [], requestTrailers: [], response: [], responseTrailers: [] };
/** By the numbers of KeyValueAppendAction. */
const ACTIONS: readonly HeaderAppendAction[] = ['append', 'add-if-absent', 'overwrite', 'overwrite-if-present'];

export const HEADER_MUTATION: HttpFilterManifest = {
  support: {
    [`${PACKAGE}.HeaderMutation`]: {
      otherwise: rejected(),
      fields: { mutations: supported(), most_specific_header_mutations_wins: supported() },
    },
    [`${PACKAGE}.HeaderMutationPerRoute`]: { otherwise: rejected(), fields: { mutations: supported() } },
    [`${PACKAGE}.Mutations`]: {
      otherwise: rejected(),
      fields: {
        request_mutations: supported('the route stays; not of the host and of `:`-names'),
        response_mutations: supported('also of replies of the proxy itself'),
        query_parameter_mutations: supported('with command operators; the route stays'),
        response_trailers_mutations: supported('where there are trailers'),
        request_trailers_mutations: supported('where there are trailers'),
      },
    },
    [`${CORE}.KeyValueMutation`]: { otherwise: rejected(), fields: { append: supported(), remove: supported() } },
    [`${CORE}.KeyValueAppend`]: {
      otherwise: rejected(),
      fields: { entry: supported(), record: supported('its value is text'), action: supported() },
    },
    [`${CORE}.KeyValue`]: { otherwise: rejected(), fields: { key: supported(), value: supported() } },
    [`${CORE}.KeyValuePair`]: { otherwise: rejected(), fields: { key: supported(), value: supported() } },
  },
  convert(message, at, conversion) {
    const { mutations, most_specific_header_mutations_wins: mostSpecificLast } = message as HeaderMutationMessage;
    const own = convertMutations(mutations, `${at}.mutations`, conversion);
    const settings: HeaderMutationSettings = { own, mostSpecificLast };
    return { name: 'filters.http.header_mutation', settings };
  },
  ofRoutes: {
    type: `${PACKAGE}.HeaderMutationPerRoute`,
    convert: (message, at, conversion) =>
      convertMutations((message as PerRouteMessage).mutations, `${at}.mutations`, conversion),
  },
};

function convertMutations(message: MutationsMessage | null, at: string, conversion: Conversion): Mutations {
  if (message === null) return NOTHING;
  const headers = (name: 'request_mutations' | 'response_mutations'): readonly HeaderEdits[] =>
    convertHeaderMutations(message[name], `${at}.${name}`, conversion);
  const trailers = (name: 'request_trailers_mutations' | 'response_trailers_mutations'): readonly HeaderEdits[] => {
    const edits = convertHeaderMutations(message[name], `${at}.${name}`, conversion);
    checkTrailers(edits, `${at}.${name}`, conversion);
    return edits;
  };
  return {
    request: headers('request_mutations'),
    query: message.query_parameter_mutations
      .map((mutation, index) => convertQuery(mutation, `${at}.query_parameter_mutations[${index}]`, conversion))
      .filter((mutation) => mutation !== undefined),
    requestTrailers: trailers('request_trailers_mutations'),
    response: headers('response_mutations'),
    responseTrailers: trailers('response_trailers_mutations'),
  };
}

function checkTrailers(edits: readonly HeaderEdits[], at: string, { faults }: Conversion): void {
  const name = edits.flatMap(({ add }) => add.map((addition) => addition.name)).find(isForbiddenTrailer);
  if (name !== undefined) faults.error(at, `"${name}" cannot be a trailer`);
}

function convertQuery(mutation: KeyValueMutation, at: string, conversion: Conversion): QueryMutation | undefined {
  const { append, remove } = mutation;
  if (append === null) {
    if (remove !== '') return { kind: 'remove', name: byteText(remove) };
    conversion.faults.error(at, 'needs append or remove');
    return undefined;
  }
  if (remove !== '') {
    conversion.faults.error(`${at}.remove`, 'cannot be given together with append');
    return undefined;
  }
  const pair = pairOf(append, `${at}.append`, conversion);
  return pair && { kind: 'set', ...pair, action: ACTIONS[append.action] ?? 'append' };
}

function pairOf(
  { entry, record }: KeyValueAppend,
  at: string,
  { faults, environment }: Conversion,
): { readonly name: string; readonly value: FormatSegments } | undefined {
  let text: string;
  if (record !== null) {
    const value = record.value?.kind === 'stringValue' ? record.value.stringValue : undefined;
    if (value === undefined) {
      faults.error(`${at}.record.value`, 'is not text');
      return undefined;
    }
    text = byteText(value);
  } else if (entry !== null) {
    text = Buffer.from(entry.value).toString('latin1');
  } else {
    faults.error(at, 'needs record');
    return undefined;
  }
  const field = record === null ? 'entry' : 'record';
  const format = parseFormat(text, environment);
  if (format.error !== undefined) {
    faults.error(`${at}.${field}.value`, format.error);
    return undefined;
  }
  return { name: byteText((record ?? entry)!.key), value: format.segments };
}

/** One character for each byte, as paths come from the wire. */
function byteText(text: string): string {
  return Buffer.from(text).toString('latin1');
}
