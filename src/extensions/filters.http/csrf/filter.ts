// Cross-site request forgery: a request that changes something has to come from a page of its own host, or of one that is
// allowed beside it. Browsers say where their requests come from in Origin, else in Referer. Worker thread; step 3 of the
// request flow.

import {
  compileByteMatch,
  type FilterCallbacks,
  type FilterContext,
  type FilterCounter,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  type LocalReply,
} from '../../../data-plane/index.ts';
import { Method, type RequestHead } from '../../../wasm/http1.ts';
import type { CsrfPolicySettings, CsrfSettings } from './settings.ts';

const FORBIDDEN: LocalReply = { status: 403, body: 'Invalid origin', flag: '-', details: 'csrf_origin_mismatch' };
/** Scheme and authority of an absolute URL, without user and password. */
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#]*@)?([^/?#]*)/i;
/** What need not be written. */
const DEFAULT_PORT: Readonly<Record<string, string>> = { http: ':80', https: ':443' };

interface Level {
  readonly isEnabled: () => boolean;
  readonly isShadowed: () => boolean;
  readonly origins: readonly ((origin: string) => boolean)[];
}

/** What all requests of a connection manager share. */
class Csrf {
  readonly own: Level;
  readonly missing: FilterCounter;
  readonly invalid: FilterCounter;
  readonly valid: FilterCounter;

  constructor({ policy, counters }: CsrfSettings, context: FilterContext) {
    this.own = levelOf(policy, context);
    this.missing = context.counter(counters.missing);
    this.invalid = context.counter(counters.invalid);
    this.valid = context.counter(counters.valid);
  }
}

class CsrfFilter implements HttpFilter {
  readonly #csrf: Csrf;
  readonly #callbacks: FilterCallbacks;

  constructor(csrf: Csrf, callbacks: FilterCallbacks) {
    this.#csrf = csrf;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const csrf = this.#csrf;
    const [level = csrf.own] = this.#callbacks.routeSettings as readonly Level[];
    const isEnabled = level.isEnabled();
    if (!isEnabled && !level.isShadowed()) return 'continue';
    const source = sourceOf(head);
    if (source === '') csrf.missing.add(1);
    else if (isAllowed(source, head, level)) {
      csrf.valid.add(1);
      return 'continue';
    } else csrf.invalid.add(1);
    if (!isEnabled) return 'continue';
    this.#callbacks.reply(FORBIDDEN);
    return 'stop';
  }
}

/** Host and port of the page that has sent the request; empty where it does not say. */
function sourceOf(head: RequestHead): string {
  return hostOf(head.headerByName('origin') ?? '') || hostOf(head.headerByName('referer') ?? '');
}

function isAllowed(source: string, head: RequestHead, { origins }: Level): boolean {
  const host = head.authority().toLowerCase();
  // Nobody knows here by which scheme the browser has come: a proxy before this one may have taken off TLS.
  if (host !== '' && (source === host || source === withoutPort(host))) return true;
  return origins.some((matches) => matches(source));
}

/** Of an absolute URL, in lower case, without the port that goes without saying; what is none, such as `null`, is compared as it is. */
function hostOf(url: string): string {
  const host = ABSOLUTE.exec(url)?.[1]?.toLowerCase();
  if (host === undefined) return url;
  const port = DEFAULT_PORT[url.slice(0, url.indexOf(':')).toLowerCase()];
  return port !== undefined && host.endsWith(port) ? host.slice(0, -port.length) : host;
}

function withoutPort(host: string): string {
  return host.replace(/:(?:80|443)$/, '');
}

function levelOf({ enabled, shadowed, origins }: CsrfPolicySettings, context: FilterContext): Level {
  return {
    isEnabled: context.share(enabled),
    isShadowed: shadowed === null ? () => false : context.share(shadowed),
    origins: origins.map(compileByteMatch),
  };
}

export const CSRF_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  // Others change nothing.
  isAwake: (_settings, _context, { methodId }) =>
    methodId === Method.POST || methodId === Method.PUT || methodId === Method.DELETE || methodId === Method.PATCH,
  compileForRoute: (settings, context) => levelOf(settings as CsrfPolicySettings, context),
  compile(settings, context) {
    const csrf = new Csrf(settings as CsrfSettings, context);
    return (callbacks) => new CsrfFilter(csrf, callbacks);
  },
};
