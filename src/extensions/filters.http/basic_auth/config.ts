// BasicAuth and BasicAuthPerRoute messages → settings of the basic_auth filter. Users stand in lines as htpasswd -s writes
// them; no fault repeats what is in one.

import {
  type Conversion,
  type HttpFilterManifest,
  type MessageTypes,
  readDataSource,
  rejected,
  supported,
} from '../../../config/index.ts';
import type { BasicAuthCounters, BasicAuthSettings, Users } from './settings.ts';

const BASIC_AUTH = 'proxy.extensions.filters.http.basic_auth.v3.BasicAuth';
const PER_ROUTE = 'proxy.extensions.filters.http.basic_auth.v3.BasicAuthPerRoute';
const COUNTERS: BasicAuthCounters = { allowed: 'basic_auth.allowed', denied: 'basic_auth.denied' };
const SCHEME = '{SHA}';
/** 20 bytes in base64. */
const DIGEST = /^[A-Za-z0-9+/]{27}=$/;
const NO_EDITS: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade']);

type BasicAuthMessage = MessageTypes[typeof BASIC_AUTH];
type PerRouteMessage = MessageTypes[typeof PER_ROUTE];

export const BASIC_AUTH_MANIFEST: HttpFilterManifest = {
  support: {
    [BASIC_AUTH]: {
      otherwise: rejected(),
      fields: {
        users: supported('lines of htpasswd, by SHA; a file is read at the start'),
        forward_username_header: supported(),
        authentication_header: supported(),
      },
    },
    [PER_ROUTE]: { otherwise: rejected(), fields: { users: supported() } },
  },
  convert(message, at, conversion) {
    const {
      users,
      forward_username_header: userHeader,
      authentication_header: credentials,
    } = message as BasicAuthMessage;
    const settings: BasicAuthSettings = {
      users: convertUsers(users, `${at}.users`, conversion),
      userHeader: userHeader.toLowerCase(),
      credentialsHeader: credentials.toLowerCase() || 'authorization',
      counters: COUNTERS,
    };
    if (NO_EDITS.has(settings.userHeader) || settings.userHeader.startsWith(':')) {
      conversion.faults.error(`${at}.forward_username_header`, `"${userHeader}" cannot be set here`);
    }
    return { name: 'filters.http.basic_auth', settings, counters: Object.values(COUNTERS) };
  },
  ofRoutes: {
    type: PER_ROUTE,
    convert: (message, at, conversion) => convertUsers((message as PerRouteMessage).users, `${at}.users`, conversion),
  },
};

function convertUsers(message: BasicAuthMessage['users'], at: string, conversion: Conversion): Users {
  const { faults } = conversion;
  const users = new Map<string, string>();
  const lines = Buffer.from(readDataSource(message, at, conversion))
    .toString('latin1')
    .split(/\r?\n/);
  for (const [index, line] of lines.entries()) {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) continue;
    const colon = text.indexOf(':');
    const [name, password] = [text.slice(0, Math.max(0, colon)), text.slice(colon + 1)];
    const fault = faultOf(name, password, users);
    if (fault === undefined) users.set(name, password.slice(SCHEME.length));
    else faults.error(at, `line ${index + 1}: ${fault}`);
  }
  return users;
}

function faultOf(name: string, password: string, users: Users): string | undefined {
  if (name === '' || password === '') return 'is not of the form name:{SHA}digest';
  if (!password.startsWith(SCHEME)) return 'is not by {SHA}, as htpasswd -s writes it';
  if (!DIGEST.test(password.slice(SCHEME.length))) return 'has no digest of 20 bytes in base64';
  return users.has(name) ? 'names a user for the second time' : undefined;
}
