// The new location of a redirected request, part by part: what the route does not give stays as the client asked.

import type { PathMatch, RedirectAction } from '../../snapshot/index.ts';
import { compilePathRewrite, type RewritePath } from './path-matcher.ts';
import type { RouteRequest } from './route-request.ts';

/** @returns the value of Location. */
export type RedirectLocation = (request: RouteRequest) => string;

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

export function compileRedirect(action: RedirectAction, match: PathMatch): RedirectLocation {
  const rewrite = action.pathRewrite === null ? null : compilePathRewrite(match, action.pathRewrite);
  const port = action.port === 0 ? '' : `:${action.port}`;
  return (request) => {
    const scheme = action.scheme || request.forwardedProto;
    const host = action.host || hostOf(request, scheme, port !== '');
    return `${scheme}://${host}${port}${pathOf(request, action, rewrite)}`;
  };
}

/** The request's host. Its port goes when another takes its place, or when it was the default of the old scheme. */
function hostOf({ authority, forwardedProto }: RouteRequest, scheme: string, hasNewPort: boolean): string {
  const colon = authority.startsWith('[') ? authority.indexOf(']:') + 1 : authority.lastIndexOf(':');
  if (colon <= 0) return authority;
  const wasDefault = scheme !== forwardedProto && authority.slice(colon) === DEFAULT_PORTS[forwardedProto];
  return hasNewPort || wasDefault ? authority.slice(0, colon) : authority;
}

function pathOf({ target, path }: RouteRequest, action: RedirectAction, rewrite: RewritePath | null): string {
  const query = action.stripQuery ? '' : target.slice(path.length);
  if (action.path !== '') return action.path.includes('?') ? action.path : action.path + query;
  return (rewrite === null ? path : rewrite(path)) + query;
}
