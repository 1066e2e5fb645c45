// Support rows of what is posted to /tap.

import { SUPPORT } from '../support/index.ts';
import { only, rejected, type SupportTable, supported } from '../support/verdict.ts';

/** With the rows of a bootstrap, some of whose messages are in it. */
export const TAP_SUPPORT: SupportTable = {
  ...SUPPORT,
  'proxy.admin.v3.TapRequest': { otherwise: rejected(), fields: { config_id: supported(), tap_config: supported() } },
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
    },
  },
  'proxy.config.tap.v3.OutputSink': {
    otherwise: rejected(),
    fields: {
      format: only(['JSON_BODY_AS_BYTES', 'JSON_BODY_AS_STRING', 'PROTO_BINARY_LENGTH_DELIMITED']),
      streaming_admin: supported(),
      buffered_admin: supported(),
    },
  },
  'proxy.config.tap.v3.StreamingAdminSink': { otherwise: rejected(), fields: {} },
  'proxy.config.tap.v3.BufferedAdminSink': {
    otherwise: rejected(),
    fields: { max_traces: supported(), timeout: supported() },
  },
};
