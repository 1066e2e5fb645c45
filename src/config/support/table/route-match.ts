// Support rows of what routes are matched by.

import { extensions, rejected, type SupportTable, supported, supportedAs, supportedWhole } from '../verdict.ts';

const TEMPLATE_MATCH = 'proxy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig';

export const ROUTE_MATCH_SUPPORT: SupportTable = {
  'proxy.config.route.v3.RouteMatch': {
    otherwise: rejected(),
    fields: {
      prefix: supported(),
      path: supported(),
      path_separated_prefix: supported(),
      regex: supported('RE2, not ECMAScript'),
      safe_regex: supported(),
      case_sensitive: supported(),
      headers: supported(),
      query_parameters: supported(),
      grpc: supportedWhole(),
      connect_matcher: supportedWhole(),
      runtime_fraction: supported(),
      runtime: supported('read as runtime_fraction out of 100'),
      path_match_policy: supportedAs('path matcher'),
      tls_context: supportedWhole(),
      dynamic_metadata: supportedWhole('of what filters have said when the route is chosen'),
      cookies: supported(),
      filter_state: supportedWhole(
        'of the request, else of its connection; a text that is an IP address for `address_match`',
      ),
    },
  },
  'proxy.config.route.v3.CookieMatcher': {
    otherwise: rejected(),
    fields: { name: supported(), string_match: supported(), invert_match: supported() },
  },
  'proxy.config.core.v3.TypedExtensionConfig (path matcher)': {
    otherwise: rejected(),
    fields: { name: supported(), typed_config: extensions([TEMPLATE_MATCH]) },
  },
  [TEMPLATE_MATCH]: { otherwise: rejected(), fields: { path_template: supported() } },
  'proxy.config.route.v3.HeaderMatcher': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      value: supported(),
      regex: supported(),
      exact_match: supported(),
      regex_match: supported('RE2, not ECMAScript'),
      range_match: supported(),
      present_match: supported(),
      prefix_match: supported(),
      suffix_match: supported(),
      safe_regex_match: supported(),
      contains_match: supported(),
      string_match: supported(),
      invert_match: supported(),
      treat_missing_header_as_empty: supported(),
    },
  },
  'proxy.config.route.v3.QueryParameterMatcher': {
    otherwise: rejected(),
    fields: {
      name: supported(),
      value: supported(),
      regex: supported('RE2, not ECMAScript'),
      string_match: supported(),
      present_match: supported(),
    },
  },
  'proxy.type.matcher.v3.StringMatcher': {
    otherwise: rejected(),
    fields: {
      custom: rejected('use exact, prefix, suffix, contains or safe_regex'),
      exact: supported(),
      prefix: supported(),
      suffix: supported(),
      contains: supported(),
      regex: supported('RE2, not ECMAScript'),
      safe_regex: supported(),
      ignore_case: supported('not with a regular expression, as in the reference'),
    },
  },
  'proxy.type.matcher.v3.RegexMatcher': {
    otherwise: rejected(),
    fields: {
      google_re2: supportedWhole('RE2 is the only engine; its time is linear, so no size limit is needed'),
      regex: supported(),
    },
  },
  'proxy.type.v3.Int64Range': { otherwise: rejected(), fields: { start: supported(), end: supported() } },
};
