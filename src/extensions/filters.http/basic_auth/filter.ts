// Lets through requests that bring the name and the password of a user (RFC 7617), and answers others with a 401. Worker
// thread; step 3 of the request flow.

import { createHash, timingSafeEqual } from 'node:crypto';
import {
  type EditableHead,
  type FilterCallbacks,
  type FilterContext,
  type FilterCounter,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  type LocalReply,
  replaceField,
} from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import type { BasicAuthSettings, Users } from './settings.ts';

const SCHEME = /^basic +/i;
const MAX_REALM_BYTES = 200;
/** Of nobody, so that the time of an answer does not say who is a user. */
const NO_DIGEST = '='.repeat(28);

const denied = (what: string, details: string): LocalReply => ({
  status: 401,
  body: `User authentication failed. ${what}`,
  flag: '-',
  details,
});
const MISSING = denied('Missing username and password.', 'no_credential_for_basic_auth');
const OTHER_SCHEME = denied("Expected 'Basic' authentication scheme.", 'invalid_scheme_for_basic_auth');
const MALFORMED = denied('Invalid basic credential, expected username:password.', 'invalid_format_for_basic_auth');
const UNKNOWN = denied('Invalid username/password combination.', 'invalid_credential_for_basic_auth');

class BasicAuth {
  readonly settings: BasicAuthSettings;
  readonly allowed: FilterCounter;
  readonly denied: FilterCounter;

  constructor(settings: BasicAuthSettings, context: FilterContext) {
    this.settings = settings;
    this.allowed = context.counter(settings.counters.allowed);
    this.denied = context.counter(settings.counters.denied);
  }
}

class BasicAuthFilter implements HttpFilter {
  readonly #auth: BasicAuth;
  readonly #callbacks: FilterCallbacks;
  /** What the answer asks for; empty for none. */
  #realm = '';

  constructor(auth: BasicAuth, callbacks: FilterCallbacks) {
    this.#auth = auth;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const { settings, allowed } = this.#auth;
    const [users = settings.users] = this.#callbacks.routeSettings as readonly Users[];
    const text = head.headerByName(settings.credentialsHeader);
    if (text === undefined) return this.#deny(head, MISSING);
    if (!SCHEME.test(text)) return this.#deny(head, OTHER_SCHEME);
    const credentials = Buffer.from(text.replace(SCHEME, ''), 'base64').toString('latin1');
    const colon = credentials.indexOf(':');
    if (colon === -1) return this.#deny(head, MALFORMED);
    const name = credentials.slice(0, colon);
    if (!isUser(users, name, credentials.slice(colon + 1))) return this.#deny(head, UNKNOWN);
    allowed.add(1);
    if (settings.userHeader !== '') {
      replaceField(head, settings.userHeader, name);
      this.#callbacks.settleEditedHead();
    }
    return 'continue';
  }

  encodeHeaders(head: EditableHead): FilterStatus {
    if (this.#realm !== '') replaceField(head, 'www-authenticate', this.#realm);
    return 'continue';
  }

  #deny(head: RequestHead, reply: LocalReply): FilterStatus {
    this.#auth.denied.add(1);
    const scheme = this.#callbacks.connection.tls === null ? 'http' : 'https';
    const [path] = head.path().split('?', 1);
    const uri = `${scheme}://${head.authority()}${path}`.slice(0, MAX_REALM_BYTES);
    this.#realm = `Basic realm="${uri.replace(/["\\]/g, '\\$&')}"`;
    this.#callbacks.reply(reply);
    return 'stop';
  }
}

/** @param password as byte text, like the name. */
function isUser(users: Users, name: string, password: string): boolean {
  const wanted = Buffer.from(users.get(name) ?? NO_DIGEST);
  const given = Buffer.from(createHash('sha1').update(password, 'latin1').digest('base64'));
  return timingSafeEqual(wanted, given);
}

export const BASIC_AUTH_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'none',
  compile(settings, context) {
    const auth = new BasicAuth(settings as BasicAuthSettings, context);
    return (callbacks) => new BasicAuthFilter(auth, callbacks);
  },
};
