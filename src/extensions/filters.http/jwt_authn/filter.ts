// Lets requests through that bring tokens which can be verified (RFC 7519), and tells those behind it what they say. Worker thread; step 3 of the
// request flow.
//
//   head ──► requirement of the route, or of the first rule ──none──► goes on
//                  │
//                  ▼
//            tokens judged ──keys missing──► waits for them, then anew
//                  ├──good──► goes on: token out, payload and claims in
//                  └──else──► 401, or 403 for other audiences

import type { JsonObject } from '../../../base/json.ts';
import type { VerificationKey } from '../../../base/json-web-keys.ts';
import {
  type EditableHead,
  type FilterCallbacks,
  type FilterContext,
  type FilterCounter,
  type FilterStatus,
  type HttpFilter,
  type HttpFilterKind,
  replaceField,
} from '../../../data-plane/index.ts';
import { Method, type RequestHead } from '../../../wasm/http1.ts';
import { isValidField } from '../field-edits.ts';
import { type Accepted, type Check, compileCheck, Judgement } from './judgement.ts';
import { type KeySource, openKeys } from './key-source.ts';
import { claimText, type FoundToken, Provider } from './provider.ts';
import type { JwtAuthnSettings, JwtStatNames, Requirement, RouteRequirement } from './settings.ts';
import { JWT_STATUS_CODES, JwtStatus } from './status.ts';

const METADATA_NAMESPACE = 'envoy.filters.http.jwt_authn';
const MAX_REALM_LENGTH = 256;

interface Rule {
  readonly matches: (head: RequestHead, callbacks: FilterCallbacks) => boolean;
  readonly check: Check;
}

/** What all requests of a connection manager share. */
class JwtAuthn {
  readonly settings: JwtAuthnSettings;
  readonly context: FilterContext;
  readonly counters: Readonly<Record<keyof JwtStatNames, FilterCounter>>;
  readonly providers: readonly Provider[];
  readonly rules: readonly Rule[];
  readonly named: ReadonlyMap<string, Check>;
  readonly byState: ReadonlyMap<string, Check>;
  /** That nobody but this filter may say. */
  readonly ownHeaders: readonly string[];

  constructor(settings: JwtAuthnSettings, context: FilterContext) {
    this.settings = settings;
    this.context = context;
    const { stats, providers, rules, named, byState } = settings;
    const names = Object.entries(stats) as [keyof JwtStatNames, string][];
    const counters = Object.fromEntries(names.map(([key, name]) => [key, context.counter(name)]));
    this.counters = counters as JwtAuthn['counters'];
    this.providers = providers.map(
      (provider) =>
        new Provider(provider, openKeys(provider.keys, context, this.counters), (name) => this.counters[name].add(1)),
    );
    const byName = new Map(this.providers.map((provider) => [provider.settings.name, provider]));
    this.rules = rules.map(({ match, conditions, requirement }) => ({
      matches: context.compileMatch(match, conditions),
      check: compileCheck(requirement, byName),
    }));
    const checks = (requirements: Iterable<readonly [string, Requirement]>): ReadonlyMap<string, Check> =>
      new Map([...requirements].map(([name, requirement]) => [name, compileCheck(requirement, byName)]));
    this.named = checks(named);
    this.byState = checks(byState?.requirements ?? []);
    const headers = providers.flatMap(({ payloadHeader, claimHeaders }) => [
      payloadHeader,
      ...claimHeaders.map(({ name }) => name),
    ]);
    this.ownHeaders = [...new Set(headers.filter((name) => name !== ''))];
  }

  /** @returns null where nothing is needed, a name for one that there is not. */
  checkFor(head: RequestHead, callbacks: FilterCallbacks): Check | string | null {
    const [level] = callbacks.routeSettings as readonly RouteRequirement[];
    if (level !== undefined) return this.named.get(level.name) ?? level.name;
    const rule = this.rules.find(({ matches }) => matches(head, callbacks));
    if (rule !== undefined) return rule.check;
    const { byState } = this.settings;
    const said = byState === null ? undefined : callbacks.state(byState.key);
    return said === undefined ? null : (this.byState.get(said) ?? null);
  }
}

class JwtAuthnFilter implements HttpFilter {
  readonly #authn: JwtAuthn;
  readonly #callbacks: FilterCallbacks;
  #check!: Check;
  #tokens!: ReadonlyMap<Provider, readonly FoundToken[]>;
  readonly #waited = new Map<KeySource, readonly VerificationKey[] | null>();
  #isHeld = false;
  #isEdited = false;
  #callOff: (() => void) | null = null;
  /** What a refusal asks for; empty for none. */
  #challenge = '';

  constructor(authn: JwtAuthn, callbacks: FilterCallbacks) {
    this.#authn = authn;
    this.#callbacks = callbacks;
  }

  decodeHeaders(head: RequestHead): FilterStatus {
    const { settings, counters, providers } = this.#authn;
    if (settings.bypassesPreflight && isPreflight(head)) {
      counters.preflightBypassed.add(1);
      this.#removeOwnHeaders(head);
      if (this.#isEdited) this.#callbacks.settleEditedHead();
      return 'continue';
    }
    const check = this.#authn.checkFor(head, this.#callbacks);
    if (typeof check === 'string') {
      counters.denied.add(1);
      const body = settings.isSilent ? '' : `Wrong requirement_name: ${check}.`;
      this.#callbacks.reply({ status: 403, body, flag: 'UAEX', details: detailsOf('Wrong requirement_name') });
      return 'stop';
    }
    this.#isHeld = true;
    this.#check = check ?? { kind: 'nothing' };
    this.#tokens = new Map(providers.map((provider) => [provider, provider.tokensIn(head)]));
    this.#removeOwnHeaders(head);
    this.#judge(head);
    return this.#isHeld ? 'stop-and-pause' : 'continue';
  }

  encodeHeaders(head: EditableHead): FilterStatus {
    if (this.#challenge !== '') replaceField(head, 'www-authenticate', this.#challenge);
    return 'continue';
  }

  onDestroy(): void {
    this.#callOff?.();
  }

  /** What stands there can only be a lie by now. */
  #removeOwnHeaders(head: RequestHead): void {
    for (const name of this.#authn.ownHeaders) {
      if (!head.hasField(name)) continue;
      head.removeField(name);
      this.#isEdited = true;
    }
  }

  #judge(head: RequestHead): void {
    const { clock } = this.#authn.context;
    const judgement = new Judgement(this.#tokens, clock.wallMs(), this.#waited);
    const outcome = judgement.of(this.#check);
    if (typeof outcome !== 'string') this.#waitFor(outcome.source);
    else {
      this.#tellFailures(judgement.failed);
      if (outcome === JwtStatus.ok) this.#allow(head, judgement.accepted);
      else this.#deny(head, outcome);
    }
  }

  #tellFailures(failed: ReadonlyMap<Provider, JwtStatus>): void {
    for (const [{ settings }, status] of failed) {
      if (settings.failureKey === '') continue;
      const told = { code: JWT_STATUS_CODES[status], message: status };
      this.#callbacks.addMetadata(METADATA_NAMESPACE, { [settings.failureKey]: told });
    }
  }

  #waitFor(source: KeySource): void {
    this.#callOff = source.wait((keys) => {
      this.#callOff = null;
      this.#waited.set(source, keys);
      try {
        this.#judge(this.#callbacks.heldRequestHead());
      } catch (error) {
        this.#callbacks.reply({ status: 500, body: '', flag: '-', details: 'filter_fault' });
        throw error;
      }
    });
  }

  #allow(head: RequestHead, accepted: readonly Accepted[]): void {
    this.#authn.counters.allowed.add(1);
    let clearsRoute = false;
    for (const one of accepted) {
      const isTold = this.#tell(head, one);
      clearsRoute ||= isTold && one.provider.settings.clearsRoute;
    }
    this.#isHeld = false;
    if (clearsRoute) this.#callbacks.settleRequestHead();
    else if (this.#isEdited) this.#callbacks.settleEditedHead();
    this.#callbacks.continueDecoding();
  }

  /** @returns whether routes may go by what has been added. */
  #tell(head: RequestHead, { provider: { settings }, token, found }: Accepted): boolean {
    const { forwards, payloadHeader, padsPayload, claimHeaders, payloadKey, headerKey, spacedClaims } = settings;
    let isTold = payloadKey !== '';
    const put = (name: string, value: string): void => {
      if (!isValidField({ name, value, action: 'set' })) return;
      replaceField(head, name, value);
      this.#isEdited = true;
    };
    if (found.header !== '' && !forwards) {
      head.removeField(found.header);
      this.#isEdited = true;
    }
    if (payloadHeader !== '') put(payloadHeader, padsPayload ? padded(token.payloadText) : token.payloadText);
    for (const { name, path } of claimHeaders) {
      const value = claimText(token, path);
      if (value === undefined) continue;
      put(name, value);
      isTold = true;
    }
    const metadata: Record<string, JsonObject> = {};
    if (payloadKey !== '') metadata[payloadKey] = normalized(token.claims, spacedClaims);
    if (headerKey !== '') metadata[headerKey] = token.header;
    if (payloadKey !== '' || headerKey !== '') this.#callbacks.addMetadata(METADATA_NAMESPACE, metadata);
    return isTold;
  }

  #deny(head: RequestHead, status: JwtStatus): void {
    const { counters, settings } = this.#authn;
    counters.denied.add(1);
    this.#challenge = settings.isSilent ? 'Bearer' : challengeOf(head, this.#callbacks, status);
    this.#callbacks.reply({
      status: status === JwtStatus.audienceNotAllowed ? 403 : 401,
      body: settings.isSilent ? '' : status,
      flag: 'UAEX',
      details: detailsOf(status),
    });
  }
}

function isPreflight(head: RequestHead): boolean {
  return (
    head.methodId === Method.OPTIONS &&
    Boolean(head.headerByName('origin')) &&
    Boolean(head.headerByName('access-control-request-method'))
  );
}

function detailsOf(what: string): string {
  return `jwt_authn_access_denied{${what.replaceAll(' ', '_')}}`;
}

/** Without the query, in which a token may stand. */
function challengeOf(head: RequestHead, { connection }: FilterCallbacks, status: JwtStatus): string {
  const [path] = head.path().split('?', 1);
  const scheme = connection.tls === null ? 'http' : 'https';
  const uri = `${scheme}://${head.authority()}${path}`.slice(0, MAX_REALM_LENGTH).replace(/["\\]/g, '\\$&');
  return `Bearer realm="${uri}"${status === JwtStatus.missing ? '' : ', error="invalid_token"'}`;
}

function padded(text: string): string {
  return text.padEnd(Math.ceil(text.length / 4) * 4, '=');
}

function normalized(claims: JsonObject, spaced: readonly string[]): JsonObject {
  if (spaced.length === 0) return claims;
  const listed = spaced.flatMap((name) => {
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
    return typeof value === 'string' ? [[name, value.split(' ').filter((part) => part !== '')] as const] : [];
  });
  return { ...claims, ...Object.fromEntries(listed) };
}

export const JWT_AUTHN_FILTER: HttpFilterKind = {
  requestBody: 'none',
  encodes: true,
  responseBody: 'none',
  compile(settings, context) {
    const authn = new JwtAuthn(settings as JwtAuthnSettings, context);
    return (callbacks) => new JwtAuthnFilter(authn, callbacks);
  },
};
