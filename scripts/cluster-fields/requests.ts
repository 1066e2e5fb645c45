// Notes on what a cluster says of its requests in place of their routes: retries and copies.

import type { MessageNotes } from './note.ts';
import { CLUSTER_POLICIES, MIRROR_SETTINGS, MIRRORS, RETRIES, RETRY_SETTINGS, ROUTE_MATCH, ROUTES } from './tests.ts';

const MUTATION = 'proxy.config.common.mutation_rules.v3.HeaderMutation';
const RETRY = 'proxy.config.route.v3.RetryPolicy';
const HOSTS = 'proxy.extensions.retry.host';
const PRIORITIES = 'proxy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig';

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
      raw_value: ['The same as bytes.', 'empty'],
    },
  },
  [RETRY]: {
    test: RETRIES,
    fields: {
      retry_on: ['What a request is tried again for.', 'nothing'],
      num_retries: ['How often.', '1'],
      per_try_timeout: ['How long the head of the response to one try may take.', 'any time'],
      per_try_idle_timeout: ['How long a try may make no progress.', 'any time'],
      retry_priority: ['Priorities that retries leave.', 'none'],
      retry_host_predicate: ['Hosts that retries do not go to.', 'none'],
      host_selection_retry_max_attempts: ['Further hosts that are drawn for a retry.', '1'],
      retriable_status_codes: ['For the condition of their name.', 'none'],
      retry_back_off: ['How long retries wait.', '25 ms and up to ten times as long', RETRY_SETTINGS],
      rate_limited_retry_back_off: ['Waits that responses ask for.', 'none', RETRY_SETTINGS],
      retriable_headers: ['Of responses; for the condition of their name.', 'none'],
      retriable_request_headers: ['One of them must match, or nothing is tried again.', 'none'],
    },
  },
  [`${RETRY}.RetryPriority`]: { test: RETRY_SETTINGS, fields: extension('The kind.') },
  [`${RETRY}.RetryHostPredicate`]: { test: RETRY_SETTINGS, fields: extension('The kind.') },
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
    config: ['As `typed_config` (v2).', 'none'],
    typed_config: [what, 'required'],
  };
}
