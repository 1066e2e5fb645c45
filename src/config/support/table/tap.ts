// Support rows of taps: what of a TapConfig is the same for /tap and for filters that record by themselves, and what such a
// filter writes to.

import { only, rejected, type SupportTable, supported } from '../verdict.ts';

/** Those whose traces can be told apart when they come one after the other. */
export const STREAMED_TAP_FORMATS = only([
  'JSON_BODY_AS_BYTES',
  'JSON_BODY_AS_STRING',
  'PROTO_BINARY_LENGTH_DELIMITED',
]);

export const TAP_CONFIG_SUPPORT: SupportTable = {
  'proxy.config.tap.v3.TapConfig': {
    otherwise: rejected(),
    fields: { match_config: supported(), match: supported(), output_config: supported(), tap_enabled: supported() },
  },
  'proxy.config.tap.v3.MatchPredicate': {
    otherwise: rejected(),
    fields: {
      or_match: supported(),
      and_match: supported(),
      not_match: supported(),
      any_match: supported(),
      http_request_headers_match: supported(),
      http_request_trailers_match: supported(),
      http_response_headers_match: supported(),
      http_response_trailers_match: supported(),
      http_request_generic_body_match: supported(),
      http_response_generic_body_match: supported(),
    },
  },
  'proxy.config.tap.v3.MatchPredicate.MatchSet': { otherwise: rejected(), fields: { rules: supported() } },
  'proxy.config.tap.v3.HttpHeadersMatch': { otherwise: rejected(), fields: { headers: supported() } },
  'proxy.config.tap.v3.HttpGenericBodyMatch': {
    otherwise: rejected(),
    fields: { bytes_limit: supported(), patterns: supported() },
  },
  'proxy.config.tap.v3.HttpGenericBodyMatch.GenericTextMatch': {
    otherwise: rejected(),
    fields: { string_match: supported(), binary_match: supported() },
  },
  'proxy.config.tap.v3.OutputConfig': {
    otherwise: rejected(),
    fields: {
      sinks: supported(),
      max_buffered_rx_bytes: supported(),
      max_buffered_tx_bytes: supported(),
      streaming: supported(),
      min_streamed_sent_bytes: rejected('concerns taps of sockets; those of requests are streamed part by part'),
    },
  },
  'proxy.config.tap.v3.OutputSink': {
    otherwise: rejected('a filter that records by itself writes to files'),
    fields: { format: supported(), file_per_tap: supported('one for each exchange that matches') },
  },
  'proxy.config.tap.v3.FilePerTapSink': { otherwise: rejected(), fields: { path_prefix: supported() } },
};
