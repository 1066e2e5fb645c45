// Http1ProtocolOptions of a connection manager → Http1Settings. Those of clusters are read in upstream-options.ts.

import type { Http1Settings } from '../../snapshot/index.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Http1ProtocolOptions } from './messages.ts';
import { convertStringMatcher } from './string-match.ts';

/** @returns nothing where clients are spoken to as usual, to be spread into settings. */
export function convertHttp1Options(
  message: Http1ProtocolOptions | null,
  at: string,
  faults: FaultSink,
): { readonly http1?: Http1Settings } {
  if (message === null) return {};
  const hasProperCase = (message.header_key_format?.proper_case_words ?? null) !== null;
  const ignoredUpgrades = message.ignore_http_11_upgrade
    .map((matcher, index) => convertStringMatcher(matcher, `${at}.ignore_http_11_upgrade[${index}]`, faults))
    .filter((match) => match !== undefined);
  return hasProperCase || ignoredUpgrades.length > 0 ? { http1: { hasProperCase, ignoredUpgrades } } : {};
}
