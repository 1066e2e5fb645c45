// FilterStateValue messages → what is said under which name: of connections and of requests alike.

import {
  type Conversion,
  convertSubstitutionFormat,
  type MessageTypes,
  rejected,
  type SupportTable,
  supported,
} from '../../config/index.ts';
import type { FilterStateValue } from './settings.ts';

const VALUE = 'proxy.extensions.filters.common.set_filter_state.v3.FilterStateValue';
type ValueMessage = MessageTypes[typeof VALUE];

/** Kinds of objects that are texts, whatever they are called. */
const TEXTS: readonly string[] = ['', 'envoy.string', 'envoy.hashable_string'];
/** Names that mean something by themselves. Whoever uses one of them wants that. */
const RESERVED = /^envoy\./;

export const FILTER_STATE_SUPPORT: SupportTable = {
  [VALUE]: {
    otherwise: rejected(),
    fields: {
      object_key: supported('a name of your own, or for connections one of those in docs/network-filters.md'),
      factory_key: supported('`envoy.string`, `envoy.hashable_string` or the object_key itself'),
      format_string: supported('as text'),
      read_only: supported(),
      shared_with_upstream: supported('has no effect: connections to upstreams have no filter state'),
      skip_if_empty: supported(),
    },
  },
};

/** @param known names that something reads, of those that mean something by themselves. */
export function convertFilterState(
  messages: readonly ValueMessage[],
  known: readonly string[],
  at: string,
  conversion: Conversion,
): readonly FilterStateValue[] {
  return messages.flatMap((message, index) => convertValue(message, known, `${at}[${index}]`, conversion) ?? []);
}

function convertValue(
  { object_key: key, factory_key: factory, format_string, read_only, skip_if_empty }: ValueMessage,
  known: readonly string[],
  at: string,
  conversion: Conversion,
): FilterStateValue | undefined {
  const { faults } = conversion;
  if (RESERVED.test(key) && !known.includes(key)) {
    faults.error(
      `${at}.object_key`,
      `"${key}" is read by nothing here; there are ${[...known, 'your own names'].join(', ')}`,
    );
  } else if (!TEXTS.includes(factory) && factory !== key) {
    faults.error(`${at}.factory_key`, `"${factory}" is no kind of text: envoy.string, envoy.hashable_string or ${key}`);
  }
  // Without it a field rule has been broken.
  if (format_string === null) return undefined;
  const format = convertSubstitutionFormat(format_string, `${at}.format_string`, conversion);
  if (format === undefined) return undefined;
  if (format.content.kind !== 'text') {
    faults.error(`${at}.format_string.json_format`, 'is no text: use text_format_source');
    return undefined;
  }
  return { key, segments: format.content.segments, isReadOnly: read_only, skipsEmpty: skip_if_empty };
}
