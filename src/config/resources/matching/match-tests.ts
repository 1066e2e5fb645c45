// How decision trees test what they look at: StringMatcher messages and extensions → tests.

import type { InputTest, MatchInput } from '../../../snapshot/index.ts';
import type { MessageTypes } from '../../proto/generated/messages.ts';
import { isCredentialHeader } from '../../proto/json-text/redaction.ts';
import { convertCidrRanges } from '../cidr.ts';
import { openExtension } from '../extension.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { StringMatcher } from '../messages.ts';
import { convertValueMatch } from '../metadata-match.ts';
import { runtimeFractionOf } from '../runtime-settings.ts';
import { convertStringMatcher } from '../string-match.ts';
import type { MatcherMessage } from './match-tree.ts';

type ExtensionMessage = NonNullable<MatcherMessage['matcher_tree']>['custom_match'];

const MATCHERS = 'proxy.extensions.matching.input_matchers';
const IP = `${MATCHERS}.ip.v3.Ip` as const;
const HASH = `${MATCHERS}.consistent_hashing.v3.ConsistentHashing` as const;
const SHARE = `${MATCHERS}.runtime_fraction.v3.RuntimeFraction` as const;
const VALUE = `${MATCHERS}.metadata.v3.Metadata` as const;

/** Message types of all tests but that of texts. */
export const MATCH_TEST_TYPES: readonly string[] = [IP, HASH, SHARE, VALUE];

/** @returns undefined for what has a fault. */
export function convertTextTest(
  message: MessageTypes['xds.type.matcher.v3.StringMatcher'],
  input: MatchInput | undefined,
  at: string,
  faults: FaultSink,
): InputTest | undefined {
  const isSecret = input?.kind === 'request-header' && isCredentialHeader(input.name);
  // The two kinds of messages have the same fields, but for one that this build refuses.
  const match = convertStringMatcher(message as unknown as StringMatcher, at, faults, isSecret);
  return match && { kind: 'text', match };
}

/** @returns undefined for what has a fault. */
export function convertCustomTest(
  extension: ExtensionMessage,
  input: MatchInput | undefined,
  at: string,
  faults: FaultSink,
): InputTest | undefined {
  const opened = openExtension(extension?.typed_config ?? null);
  const here = `${at}.typed_config`;
  switch (opened?.typeName) {
    case IP: {
      const { cidr_ranges } = opened.message as MessageTypes[typeof IP];
      return { kind: 'ip', ranges: convertCidrRanges(cidr_ranges, `${here}.cidr_ranges`, faults) };
    }
    case HASH: {
      const { threshold, modulo, seed } = opened.message as MessageTypes[typeof HASH];
      if (modulo > 0 && threshold >= modulo) {
        faults.error(`${here}.threshold`, `${threshold} is not less than the modulo ${modulo}`);
      }
      return { kind: 'hash', threshold, modulo, seed: String(seed) };
    }
    case SHARE: {
      const { runtime_fraction, seed } = opened.message as MessageTypes[typeof SHARE];
      const share = runtimeFractionOf(runtime_fraction);
      return share === null ? undefined : { kind: 'share', share, seed: String(seed) };
    }
    case VALUE: {
      const { value, invert: isInverted } = opened.message as MessageTypes[typeof VALUE];
      if (input !== undefined && input.kind !== 'dynamic-metadata') {
        faults.error(here, 'tests dynamic metadata: the input must be a DynamicMetadataInput');
      }
      return value === null
        ? undefined
        : { kind: 'value', match: convertValueMatch(value, `${here}.value`, faults), isInverted };
    }
    default:
      return undefined;
  }
}
