// MetadataMatcher messages → what must stand in metadata.

import type { MetadataMatch, ValueMatch } from '../../snapshot/index.ts';
import type { FaultSink } from './fault-sink.ts';
import type { MetadataMatcher, ValueMatcher } from './messages.ts';
import { convertStringMatcher } from './string-match.ts';

/** In place of what has a fault. */
const NO_VALUE: ValueMatch = { kind: 'any-of', matches: [] };

export function convertMetadataMatch(
  { filter: namespace, path, value, invert: isInverted }: MetadataMatcher,
  at: string,
  faults: FaultSink,
): MetadataMatch {
  return {
    namespace,
    path: path.map(({ key }) => key),
    value: value === null ? NO_VALUE : convertValueMatch(value, `${at}.value`, faults),
    isInverted,
  };
}

export function convertValueMatch(message: ValueMatcher, at: string, faults: FaultSink): ValueMatch {
  switch (message.match_pattern) {
    case 'null_match':
      return { kind: 'null' };
    case 'double_match': {
      const { range, exact } = message.double_match!;
      return range === null ? { kind: 'number', value: exact } : { kind: 'range', start: range.start, end: range.end };
    }
    case 'string_match': {
      const match = convertStringMatcher(message.string_match!, `${at}.string_match`, faults);
      return match === undefined ? NO_VALUE : { kind: 'string', match };
    }
    case 'bool_match':
      return { kind: 'boolean', value: message.bool_match };
    case 'present_match':
      return { kind: 'present', isPresent: message.present_match };
    case 'list_match': {
      const { one_of: oneOf } = message.list_match!;
      return oneOf === null
        ? NO_VALUE
        : { kind: 'list', oneOf: convertValueMatch(oneOf, `${at}.list_match.one_of`, faults) };
    }
    case 'or_match': {
      const here = `${at}.or_match.value_matchers`;
      const matches = message.or_match!.value_matchers.map((one, index) =>
        convertValueMatch(one, `${here}[${index}]`, faults),
      );
      return { kind: 'any-of', matches };
    }
    default:
      return NO_VALUE;
  }
}
