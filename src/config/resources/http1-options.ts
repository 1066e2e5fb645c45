// Http1ProtocolOptions of a connection manager → Http1Settings. Those of clusters are read in upstream-options.ts.

import type { Http1Settings } from '../../snapshot/index.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Http1ProtocolOptions } from './messages.ts';
import { convertStringMatcher } from './string-match.ts';
import { valueOr } from './units.ts';

/**
 * @param survivesBadRequests what the connection manager says of messages with a fault, for options that do not.
 * @returns nothing where clients are spoken to as usual, to be spread into settings.
 */
export function convertHttp1Options(
  message: Http1ProtocolOptions | null,
  survivesBadRequests: boolean,
  at: string,
  faults: FaultSink,
): { readonly http1?: Http1Settings } {
  const ignoredUpgrades = (message?.ignore_http_11_upgrade ?? [])
    .map((matcher, index) => convertStringMatcher(matcher, `${at}.ignore_http_11_upgrade[${index}]`, faults))
    .filter((match) => match !== undefined);
  const http1: Http1Settings = {
    hasProperCase: (message?.header_key_format?.proper_case_words ?? null) !== null,
    ignoredUpgrades,
    takesChunkedLength: message?.allow_chunked_length ?? false,
    survivesBadRequests: valueOr(message?.override_stream_error_on_invalid_http_message ?? null, survivesBadRequests),
  };
  const isUsual = !http1.hasProperCase && !http1.takesChunkedLength && !http1.survivesBadRequests;
  return isUsual && ignoredUpgrades.length === 0 ? {} : { http1 };
}
