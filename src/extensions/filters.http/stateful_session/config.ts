// StatefulSession and StatefulSessionPerRoute messages → settings of the stateful_session filter.

import {
  type Conversion,
  convertCookie,
  extensions,
  type HttpFilterManifest,
  type MessageTypes,
  openExtension,
  rejected,
  supported,
  supportedAs,
} from '../../../config/index.ts';
import type { SessionCounters, SessionSettings, SessionState, StatefulSessionSettings } from './settings.ts';

const PACKAGE = 'proxy.extensions.filters.http.stateful_session.v3';
const SESSION = `${PACKAGE}.StatefulSession`;
const PER_ROUTE = `${PACKAGE}.StatefulSessionPerRoute`;
const COOKIE = 'proxy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState';
const HEADER = 'proxy.extensions.http.stateful_session.header.v3.HeaderBasedSessionState';
const ENVELOPE = 'proxy.extensions.http.stateful_session.envelope.v3.EnvelopeSessionState';
const ROLE = 'session state';

type SessionMessage = MessageTypes[typeof SESSION];
type PerRouteMessage = MessageTypes[typeof PER_ROUTE];
type CookieMessage = MessageTypes[typeof COOKIE];
type HeaderMessage = MessageTypes[typeof HEADER];
type EnvelopeMessage = MessageTypes[typeof ENVELOPE];

const UNAVAILABLE = 503;
const BODILESS: readonly number[] = [204, 205, 304];

export const STATEFUL_SESSION: HttpFilterManifest = {
  support: {
    [SESSION]: {
      otherwise: rejected(),
      fields: {
        session_state: supportedAs(ROLE),
        strict: supported(),
        stat_prefix: supported('of the filter, not of routes'),
        status_on_strict_destination_not_found: supported('200 to 599, of responses that may have a body'),
      },
    },
    [`proxy.config.core.v3.TypedExtensionConfig (${ROLE})`]: {
      otherwise: rejected(),
      fields: { name: supported(), typed_config: extensions([COOKIE, HEADER, ENVELOPE]) },
    },
    [COOKIE]: { otherwise: rejected(), fields: { cookie: supported() } },
    'proxy.type.http.v3.Cookie': {
      otherwise: rejected(),
      fields: { name: supported(), ttl: supported(), path: supported(), attributes: supported() },
    },
    'proxy.type.http.v3.CookieAttribute': {
      otherwise: rejected(),
      fields: { name: supported(), value: supported() },
    },
    [HEADER]: { otherwise: rejected(), fields: { name: supported() } },
    [ENVELOPE]: {
      otherwise: rejected(),
      fields: {
        header: supported('of responses that have it once'),
        sse_endpoint_message: rejected(
          'event streams pass as they are: have the upstream name its sessions in a header',
        ),
      },
    },
    [`${ENVELOPE}.Header`]: { otherwise: rejected(), fields: { name: supported() } },
    [PER_ROUTE]: { otherwise: rejected(), fields: { disabled: supported(), stateful_session: supported() } },
  },
  convert(message, at, conversion) {
    const filter = message as SessionMessage;
    const session = convertSession(filter, at, conversion);
    if (session === undefined) return undefined;
    const counters = filter.stat_prefix === '' ? null : counterNames(filter.stat_prefix);
    const settings: StatefulSessionSettings = { ...session, counters };
    return {
      name: 'filters.http.stateful_session',
      settings,
      ...(counters === null ? {} : { counters: Object.values(counters) }),
    };
  },
  ofRoutes: {
    type: PER_ROUTE,
    convert(message, at, conversion) {
      const { stateful_session: session } = message as PerRouteMessage;
      return session === null ? 'off' : convertSession(session, `${at}.stateful_session`, conversion);
    },
  },
};

function counterNames(prefix: string): SessionCounters {
  const scope = `stateful_session.${prefix}`;
  return {
    routed: `${scope}.routed`,
    failedOpen: `${scope}.failed_open`,
    failedClosed: `${scope}.failed_closed`,
    noSession: `${scope}.no_session`,
  };
}

function convertSession(message: SessionMessage, at: string, conversion: Conversion): SessionSettings | undefined {
  const { strict: isStrict, status_on_strict_destination_not_found: status } = message;
  const isStatus = status >= 200 && status < 600 && !BODILESS.includes(status);
  if (status !== 0 && !isStatus) {
    const text = `${status} is the status of no response that has a body`;
    conversion.faults.error(`${at}.status_on_strict_destination_not_found`, text);
  }
  const missingStatus = status === 0 ? UNAVAILABLE : status;
  if (message.session_state === null) return { state: null, isStrict, missingStatus };
  const state = convertState(message.session_state, `${at}.session_state.typed_config`, conversion);
  return state && { state, isStrict, missingStatus };
}

/** @returns undefined for what has been refused. */
function convertState(
  { typed_config: any }: NonNullable<SessionMessage['session_state']>,
  at: string,
  { faults }: Conversion,
): SessionState | undefined {
  const opened = openExtension(any);
  if (opened?.typeName === HEADER) {
    return { kind: 'header', name: (opened.message as HeaderMessage).name.toLowerCase() };
  }
  if (opened?.typeName === ENVELOPE) {
    const { header } = opened.message as EnvelopeMessage;
    return header === null ? undefined : { kind: 'envelope', name: header.name.toLowerCase() };
  }
  if (opened?.typeName !== COOKIE) return undefined;
  const { cookie } = opened.message as CookieMessage;
  // A field rule has told of one that is missing.
  return cookie === null ? undefined : { kind: 'cookie', cookie: convertCookie(cookie, `${at}.cookie`, faults) };
}
