// Notes on what a cluster says of its requests in place of their routes: retries and copies.

import type { MessageNotes } from './note.ts';
import { CLUSTER_POLICIES, MIRROR_SETTINGS, MIRRORS, RETRIES, RETRY_SETTINGS, ROUTE_MATCH, ROUTES } from './tests.ts';

const MUTATION = 'proxy.config.common.mutation_rules.v3.HeaderMutation';
const RETRY = 'proxy.config.route.v3.RetryPolicy';
const HOSTS = 'proxy.extensions.retry.host';
const PRIORITIES = 'proxy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig';

const RETRY_CONDITIONS = `Of a cluster, it takes the place of the policy of the route as a whole. Internal clients may add conditions by
[headers](headers.md). Where a try fails and none of its conditions holds, the client gets what came. \`x-proxy-overloaded\` of a response rules
out another try, \`x-proxy-ratelimited\` all conditions but \`envoy-ratelimited\`. What a circuit breaker turns away is never tried again.

| condition of \`retry_on\` | holds for |
|---|---|
| \`5xx\` | a status of 500 to 599; a try that ended without a response, as in \`reset\` |
| \`gateway-error\` | 502, 503, 504; a try that ended without a response |
| \`reset\` | no response: the connection failed, or broke before the head, or the time of the try was over |
| \`reset-before-request\` | as \`reset\`, as long as nothing of the request had been sent |
| \`connect-failure\` | no connection, or not within \`connect_timeout\` |
| \`refused-stream\` | an HTTP/2 upstream that refuses the stream; never with HTTP/1 |
| \`retriable-4xx\` | 409 |
| \`retriable-status-codes\` | a status of \`retriable_status_codes\` |
| \`retriable-headers\` | a response that \`retriable_headers\` match |
| \`envoy-ratelimited\` | a response with \`x-proxy-ratelimited\`; \`proxy-ratelimited\` is the same |
| \`cancelled\`, \`deadline-exceeded\`, \`internal\`, \`resource-exhausted\`, \`unavailable\` | \`grpc-status\` 1, 4, 13, 8, 14 in the head of the response |
| \`http3-post-connect-failure\` | nothing: there is no HTTP/3 |`;

export const REQUESTS_NOTES: Readonly<Record<string, MessageNotes>> = {
  'proxy.config.route.v3.RouteAction.RequestMirrorPolicy': {
    test: MIRRORS,
    fields: {
      cluster: ['Where copies go.', '`cluster_header`', CLUSTER_POLICIES],
      cluster_header: ['The request header that names where they go.', 'none'],
      runtime_key: ['Runtime key of the share of requests that are copied, of 10,000.', 'none', MIRROR_SETTINGS],
      runtime_fraction: ['The share of requests that are copied.', 'all'],
      disable_shadow_host_suffix_append: ['The host of copies does not end in `-shadow`.', '`false`'],
      host_rewrite_literal: ['The host of copies.', 'that of the request'],
      request_headers_mutations: ['Changes of the heads of copies, one after the other.', 'none'],
    },
  },
  'proxy.config.core.v3.RuntimeFractionalPercent': {
    test: MIRRORS,
    fields: {
      default_value: ['The share, where the runtime says nothing.', 'required'],
      runtime_key: ['The runtime key that says it.', 'none'],
    },
  },
  'proxy.type.v3.FractionalPercent': {
    test: MIRROR_SETTINGS,
    fields: { numerator: ['So many.', '0'], denominator: ['Of a hundred, ten thousand or a million.', '`HUNDRED`'] },
  },
  [MUTATION]: {
    test: MIRROR_SETTINGS,
    fields: { remove: ['The header that goes.', 'none'], append: ['The header that comes.', 'none'] },
  },
  'proxy.config.core.v3.HeaderValueOption': {
    test: ROUTES,
    fields: {
      header: ['Its name and value.', 'required'],
      append: ['Beside a header of that name, rather than in its place.', 'as `append_action`'],
      append_action: ['What becomes of a header of that name.', '`APPEND_IF_EXISTS_OR_ADD`'],
      keep_empty_value: ['A value that turns out empty is added, too.', '`false`'],
    },
  },
  'proxy.config.core.v3.HeaderValue': {
    test: ROUTES,
    fields: {
      key: ['The name.', 'required'],
      value: ['The value, with command operators.', 'empty'],
      raw_value: ['The value as bytes, in place of `value`.', 'empty'],
    },
  },
  [RETRY]: {
    about: RETRY_CONDITIONS,
    test: RETRIES,
    fields: {
      retry_on: ['A list of the conditions above, with commas. Others are passed over with a warning.', 'nothing'],
      num_retries: ['How often a request is tried again at most.', '1'],
      per_try_timeout: ['How long the head of the response to one try may take.', 'any time'],
      per_try_idle_timeout: ['How long a try may make no progress.', 'any time'],
      retry_priority: ['How retries leave the priorities that were tried.', 'they do not'],
      retry_host_predicate: ['Hosts that retries do not go to.', 'none'],
      host_selection_retry_max_attempts: ['Further hosts that are drawn for a retry.', '1'],
      retriable_status_codes: ['Statuses for the condition `retriable-status-codes`.', 'none'],
      retry_back_off: [
        'How long retries wait: a random time, whose bound doubles with each.',
        '25 ms, up to ten times as long',
        RETRY_SETTINGS,
      ],
      rate_limited_retry_back_off: ['Waits that responses ask for.', 'none', RETRY_SETTINGS],
      retriable_headers: [
        'Headers of a response for the condition `retriable-headers`; one that matches is enough.',
        'none',
      ],
      retriable_request_headers: [
        'Headers of the request of which one must match, or nothing is tried again.',
        'any request',
      ],
    },
  },
  [`${RETRY}.RetryPriority`]: {
    test: RETRY_SETTINGS,
    fields: extension('Retries leave priorities that were tried before.'),
  },
  [`${RETRY}.RetryHostPredicate`]: {
    test: RETRY_SETTINGS,
    fields: extension('Which hosts: those that were tried, canaries, or those with certain metadata.'),
  },
  [PRIORITIES]: {
    test: RETRIES,
    fields: { update_frequency: ['Tries after which retries leave the priorities that were tried.', 'required'] },
  },
  [`${HOSTS}.omit_host_metadata.v3.OmitHostMetadataConfig`]: {
    test: RETRY_SETTINGS,
    fields: { metadata_match: ['What the metadata of the host says.', 'no host is meant'] },
  },
  [`${RETRY}.RetryBackOff`]: {
    test: RETRY_SETTINGS,
    fields: {
      base_interval: ['From which the range of waits grows.', 'required'],
      max_interval: ['No wait is longer.', 'ten times `base_interval`'],
    },
  },
  [`${RETRY}.RateLimitedRetryBackOff`]: {
    test: RETRY_SETTINGS,
    fields: {
      reset_headers: ['Response headers; the first that says something counts.', 'required'],
      max_interval: ['Longer waits are not obeyed.', '300 s'],
    },
  },
  [`${RETRY}.ResetHeader`]: {
    test: RETRY_SETTINGS,
    fields: { name: ['Its name.', 'required'], format: ['Seconds to wait, or a time.', '`SECONDS`'] },
  },
  'proxy.config.route.v3.HeaderMatcher': {
    test: ROUTE_MATCH,
    fields: {
      name: ['The header.', 'required'],
      value: ['Its value (v2).', 'any'],
      regex: ['`value` is a regular expression (v2).', '`false`'],
      exact_match: ['Its value.', 'none'],
      regex_match: ['A regular expression for it.', 'none'],
      safe_regex_match: ['A regular expression for it.', 'none'],
      range_match: ['A range for it, as a number.', 'none'],
      present_match: ['Whether it is there.', 'none'],
      prefix_match: ['How it begins.', 'none'],
      suffix_match: ['How it ends.', 'none'],
      contains_match: ['What is in it.', 'none'],
      string_match: ['Any of these ways.', 'none'],
      invert_match: ['It must not match.', '`false`'],
      treat_missing_header_as_empty: ['A missing header is taken for an empty one.', '`false`'],
    },
  },
};

function extension(what: string): MessageNotes['fields'] {
  return {
    name: ['For readers.', 'required'],
    config: ['The older form of `typed_config` (v2), without a type.', 'none'],
    typed_config: [what, 'required'],
  };
}
