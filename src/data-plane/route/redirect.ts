// The new location of a redirected request, part by part: what the route does not give stays as the client asked.

import { utf8Bytes } from '../../base/byte-text.ts';
import type { PathMatch, RedirectAction } from '../../snapshot/index.ts';
import { compilePlainRewrite, type RewritePath } from './path-matcher.ts';
import type { RouteRequest } from './route-request.ts';

/** What of a request the place goes by that it is sent to. */
export type RedirectedRequest = Pick<RouteRequest, 'authority' | 'forwardedProto' | 'target' | 'path'>;

/** @returns the value of Location. */
export type RedirectLocation = (request: RedirectedRequest) => string;

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

export function compileRedirect(action: RedirectAction, match: PathMatch): RedirectLocation {
  const rewrite = action.pathRewrite === null ? null : compilePlainRewrite(match, action.pathRewrite);
  const configuredHost = utf8Bytes(action.host);
  const path = utf8Bytes(action.path);
  const port = action.port === 0 ? '' : `:${action.port}`;
  return (request) => {
    const scheme = action.scheme || request.forwardedProto;
    const host = configuredHost || hostOf(request, scheme, port !== '');
    return `${scheme}://${host}${port}${pathOf(request, path, action.stripQuery, rewrite)}`;
  };
}

/** The request's host. Its port goes when another takes its place, or when it was the default of the old scheme. */
function hostOf({ authority, forwardedProto }: RedirectedRequest, scheme: string, hasNewPort: boolean): string {
  const colon = authority.startsWith('[') ? authority.indexOf(']:') + 1 : authority.lastIndexOf(':');
  if (colon <= 0) return authority;
  const wasDefault = scheme !== forwardedProto && authority.slice(colon) === DEFAULT_PORTS[forwardedProto];
  return hasNewPort || wasDefault ? authority.slice(0, colon) : authority;
}

function pathOf(
  { target, path }: RedirectedRequest,
  replacement: string,
  stripsQuery: boolean,
  rewrite: RewritePath | null,
): string {
  const query = stripsQuery ? '' : target.slice(path.length);
  if (replacement !== '') return replacement.includes('?') ? replacement : replacement + query;
  return (rewrite === null ? path : rewrite(path)) + query;
}
