// ApiKeyAuth and ApiKeyAuthPerRoute messages → settings of the api_key_auth filter. Workers are told digests of keys; no fault
// repeats a key.

import { createHash } from 'node:crypto';
import {
  type Conversion,
  type HttpFilterManifest,
  type MessageTypes,
  rejected,
  supported,
} from '../../../config/index.ts';
import type {
  ApiKeyAuthCounters,
  ApiKeyAuthSettings,
  Clients,
  Forwarding,
  KeySettings,
  KeySource,
  RouteKeySettings,
} from './settings.ts';

const PACKAGE = 'proxy.extensions.filters.http.api_key_auth.v3';
const FILTER = `${PACKAGE}.ApiKeyAuth` as const;
const PER_ROUTE = `${PACKAGE}.ApiKeyAuthPerRoute` as const;
const COUNTERS: ApiKeyAuthCounters = {
  allowed: 'api_key_auth.allowed',
  unauthorized: 'api_key_auth.unauthorized',
  forbidden: 'api_key_auth.forbidden',
};
/** Of the message, not of the request. */
const FRAMING: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade']);
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROL = /[\x00-\x1f\x7f]/;

type FilterMessage = MessageTypes[typeof FILTER];
type RouteMessage = MessageTypes[typeof PER_ROUTE];
/** What both have. */
type Said = Pick<RouteMessage, 'credentials' | 'key_sources' | 'forwarding'>;

const whole = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, supported()]));

export const API_KEY_AUTH: HttpFilterManifest = {
  support: {
    [FILTER]: { otherwise: rejected(), fields: whole('credentials', 'key_sources', 'forwarding') },
    [PER_ROUTE]: {
      otherwise: rejected(),
      fields: whole('credentials', 'key_sources', 'forwarding', 'allowed_clients'),
    },
    [`${PACKAGE}.Credential`]: { otherwise: rejected(), fields: whole('key', 'client') },
    [`${PACKAGE}.KeySource`]: { otherwise: rejected(), fields: whole('header', 'query', 'cookie') },
    [`${PACKAGE}.Forwarding`]: { otherwise: rejected(), fields: whole('header', 'hide_credentials') },
  },
  convert(message, at, conversion) {
    const settings: ApiKeyAuthSettings = {
      ...convertSaid(message as FilterMessage, at, conversion),
      counters: COUNTERS,
    };
    return { name: 'filters.http.api_key_auth', settings, counters: Object.values(COUNTERS) };
  },
  ofRoutes: {
    type: PER_ROUTE,
    convert(message, at, conversion): RouteKeySettings {
      const { allowed_clients: allowed } = message as RouteMessage;
      const said = convertSaid(message as RouteMessage, at, conversion);
      return { ...said, allowed: allowed.length === 0 ? null : new Set(allowed) };
    },
  },
};

function convertSaid({ credentials, key_sources: sources, forwarding }: Said, at: string, c: Conversion): KeySettings {
  return {
    clients: credentials.length === 0 ? null : convertClients(credentials, `${at}.credentials`, c),
    sources:
      sources.length === 0
        ? null
        : sources.flatMap((source, index) => convertSource(source, `${at}.key_sources[${index}]`, c) ?? []),
    forwarding: forwarding && convertForwarding(forwarding, `${at}.forwarding`, c),
  };
}

function convertClients(credentials: Said['credentials'], at: string, { faults }: Conversion): Clients {
  const clients = new Map<string, string>();
  for (const [index, { key, client }] of credentials.entries()) {
    const digest = createHash('sha256').update(key).digest('base64');
    // A key without any has broken a field rule.
    if (key !== '' && clients.has(digest)) faults.error(`${at}[${index}].key`, 'is that of another entry, too');
    if (CONTROL.test(client)) faults.error(`${at}[${index}].client`, 'has control characters');
    clients.set(digest, client);
  }
  return clients;
}

/** @returns undefined for none; reports it. */
function convertSource(
  { header, query, cookie }: Said['key_sources'][number],
  at: string,
  { faults }: Conversion,
): KeySource | undefined {
  if (header !== '') return { kind: 'header', name: header.toLowerCase() };
  if (query !== '') return { kind: 'query', name: query };
  if (cookie !== '') return { kind: 'cookie', name: cookie };
  faults.error(at, 'needs header, query or cookie');
  return undefined;
}

function convertForwarding(
  { header, hide_credentials: hidesKeys }: NonNullable<Said['forwarding']>,
  at: string,
  { faults }: Conversion,
): Forwarding {
  const clientHeader = header.toLowerCase();
  if (FRAMING.has(clientHeader) || header.startsWith(':'))
    faults.error(`${at}.header`, `"${header}" cannot be set here`);
  return { clientHeader, hidesKeys };
}
