// InternalRedirectPolicy message, or the fields of the route that came before it → which redirects the proxy follows itself.

import type { InternalRedirectSettings, RedirectPredicate } from '../../snapshot/index.ts';
import { RouteAction_InternalRedirectAction as RedirectAction } from '../proto/generated/enums.ts';
import { openExtension } from './extension.ts';
import type { FaultSink } from './fault-sink.ts';
import type { AllowListedRoutesConfig, InternalRedirectPolicy, RouteActionMessage } from './messages.ts';
import { valueOr } from './units.ts';

const DEFAULT_REDIRECTS = 1;
const FOUND = 302;
/** Statuses that lead elsewhere by their Location (RFC 9110 section 15.4). */
const REDIRECTS: ReadonlySet<number> = new Set([301, FOUND, 303, 307, 308]);
const PREDICATES = 'proxy.extensions.internal_redirect';

/** @returns null where the client gets every redirect. */
export function convertInternalRedirects(
  message: RouteActionMessage,
  at: string,
  faults: FaultSink,
): InternalRedirectSettings | null {
  if (message.internal_redirect_policy !== null) {
    return convertPolicy(message.internal_redirect_policy, `${at}.internal_redirect_policy`, faults);
  }
  if (message.internal_redirect_action !== RedirectAction.HANDLE_INTERNAL_REDIRECT) return null;
  return {
    maxRedirects: valueOr(message.max_internal_redirects, DEFAULT_REDIRECTS),
    statuses: [FOUND],
    predicates: [],
    allowsCrossScheme: false,
    headersToCopy: [],
  };
}

function convertPolicy(message: InternalRedirectPolicy, at: string, faults: FaultSink): InternalRedirectSettings {
  return {
    maxRedirects: valueOr(message.max_internal_redirects, DEFAULT_REDIRECTS),
    statuses: convertStatuses(message.redirect_response_codes, `${at}.redirect_response_codes`, faults),
    predicates: message.predicates.flatMap(({ typed_config }) => convertPredicate(openExtension(typed_config))),
    allowsCrossScheme: message.allow_cross_scheme_redirect,
    headersToCopy: convertHeaders(message.response_headers_to_copy, `${at}.response_headers_to_copy`, faults),
  };
}

function convertStatuses(codes: readonly number[], at: string, faults: FaultSink): readonly number[] {
  if (codes.length === 0) return [FOUND];
  for (const [index, code] of codes.entries()) {
    if (!REDIRECTS.has(code)) faults.warning(`${at}[${index}]`, `${code} is no redirect; it has no effect`);
  }
  return codes.filter((code) => REDIRECTS.has(code));
}

/** Those that this build lacks are refused by the support table. */
function convertPredicate(opened: ReturnType<typeof openExtension>): readonly RedirectPredicate[] {
  switch (opened?.typeName) {
    case `${PREDICATES}.allow_listed_routes.v3.AllowListedRoutesConfig`:
      return [{ kind: 'allowed-routes', names: (opened.message as AllowListedRoutesConfig).allowed_route_names }];
    case `${PREDICATES}.previous_routes.v3.PreviousRoutesConfig`:
      return [{ kind: 'previous-routes' }];
    case `${PREDICATES}.safe_cross_scheme.v3.SafeCrossSchemeConfig`:
      return [{ kind: 'safe-cross-scheme' }];
    default:
      return [];
  }
}

function convertHeaders(names: readonly string[], at: string, faults: FaultSink): readonly string[] {
  for (const [index, name] of names.entries()) {
    if (name.startsWith(':') || name.toLowerCase() === 'host') {
      faults.error(`${at}[${index}]`, `${name} is set by where the redirect leads`);
    }
  }
  return names.map((name) => name.toLowerCase());
}
