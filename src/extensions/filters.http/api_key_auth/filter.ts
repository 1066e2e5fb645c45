// Lets through requests that bring the key of a client, and answers others with a 401, or a 403 where their route is for other
// clients. Worker thread; step 3 of the request flow.

import { createHash } from 'node:crypto';
import { utf8Bytes } from '../../../base/byte-text.ts';
import {
  decodedQueryValue,
  type FilterCallbacks,
  type FilterContext,
  type FilterCounter,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  type LocalReply,
  replaceField,
  requestCookie,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { QueryParameters } from '../query-parameters.ts';
import type { ApiKeyAuthSettings, KeySource, RouteKeySettings } from './settings.ts';

const BEARER = 'Bearer ';

const refusal = (status: number, body: string, details: string): LocalReply => ({ status, body, flag: '-', details });
const unauthorized = (details: string): LocalReply => refusal(401, 'Client authentication failed.', details);
const NO_SOURCES = unauthorized('missing_key_sources');
const NO_CREDENTIALS = unauthorized('missing_credentials');
const NO_KEY = unauthorized('missing_api_key');
const UNKNOWN_KEY = unauthorized('unknown_api_key');
const NOT_ALLOWED = refusal(403, 'Client is forbidden.', 'client_not_allowed');

class ApiKeyAuth {
  readonly settings: ApiKeyAuthSettings;
  readonly allowed: FilterCounter;
  readonly unauthorized: FilterCounter;
  readonly forbidden: FilterCounter;

  constructor(settings: ApiKeyAuthSettings, context: FilterContext) {
    const { counters } = settings;
    this.settings = settings;
    this.allowed = context.counter(counters.allowed);
    this.unauthorized = context.counter(counters.unauthorized);
    this.forbidden = context.counter(counters.forbidden);
  }
}

class ApiKeyAuthFilter implements HttpFilter {
  readonly #auth: ApiKeyAuth;
  readonly #callbacks: FilterCallbacks;

  constructor(auth: ApiKeyAuth, callbacks: FilterCallbacks) {
    this.#auth = auth;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const own = this.#auth.settings;
    const [ofRoute] = this.#callbacks.routeSettings as readonly RouteKeySettings[];
    const sources = ofRoute?.sources ?? own.sources;
    const clients = ofRoute?.clients ?? own.clients;
    if (sources === null) return this.#deny(NO_SOURCES);
    if (clients === null) return this.#deny(NO_CREDENTIALS);
    const key = keyIn(head, sources);
    if (key === '') return this.#deny(NO_KEY);
    const client = clients.get(createHash('sha256').update(key, 'latin1').digest('base64'));
    if (client === undefined) return this.#deny(UNKNOWN_KEY);
    if (ofRoute?.allowed?.has(client) === false) return this.#deny(NOT_ALLOWED);
    this.#auth.allowed.add(1);
    const forwarding = ofRoute?.forwarding ?? own.forwarding;
    if (forwarding === null) return 'continue';
    const { clientHeader, hidesKeys } = forwarding;
    if (hidesKeys) for (const source of sources) hideKey(head, source);
    if (clientHeader !== '') replaceField(head, clientHeader, utf8Bytes(client));
    this.#callbacks.settleEditedHead();
    return 'continue';
  }

  #deny(reply: LocalReply): FilterStatus {
    this.#auth[reply.status === 403 ? 'forbidden' : 'unauthorized'].add(1);
    this.#callbacks.reply(reply);
    return 'stop';
  }
}

/** The first that there is, byte text; empty for none. */
function keyIn(head: RequestHead, sources: readonly KeySource[]): string {
  for (const { kind, name } of sources) {
    const key =
      kind === 'header' ? inHeader(head, name) : kind === 'query' ? inQuery(head, name) : requestCookie(head, name);
    if (key !== '') return key;
  }
  return '';
}

function inHeader(head: RequestHead, name: string): string {
  const value = head.headerByName(name) ?? '';
  return value.startsWith(BEARER) ? value.slice(BEARER.length) : value;
}

function inQuery(head: RequestHead, name: string): string {
  const target = head.path();
  const mark = target.indexOf('?');
  return (mark === -1 ? undefined : decodedQueryValue(target.slice(mark + 1), name)) ?? '';
}

function hideKey(head: RequestHead, { kind, name }: KeySource): void {
  if (kind === 'header') head.removeField(name);
  else if (kind === 'cookie') hideCookie(head, name);
  else {
    const target = head.path();
    const query = new QueryParameters(target);
    const bytes = utf8Bytes(name);
    if (!query.has(bytes)) return;
    query.remove(bytes);
    head.replaceTarget(query.target());
  }
}

function hideCookie(head: RequestHead, name: string): void {
  const cookies = head.entries().flatMap(([field, value]) => (field === 'cookie' ? value.split(';') : []));
  const others = cookies.map((cookie) => cookie.trim()).filter((cookie) => !cookie.startsWith(`${name}=`));
  if (others.length === cookies.length) return;
  if (others.length === 0) head.removeField('cookie');
  else replaceField(head, 'cookie', others.join('; '));
}

export const API_KEY_AUTH_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: false,
  responseBody: 'none',
  compile(settings, context) {
    const auth = new ApiKeyAuth(settings as ApiKeyAuthSettings, context);
    return (callbacks) => new ApiKeyAuthFilter(auth, callbacks);
  },
};
