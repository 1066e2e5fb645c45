// One issuer of tokens: where they stand in a request, and whether one is good.

import { utf8Bytes } from '../../../base/byte-text.ts';
import { jsonAt } from '../../../base/json.ts';
import type { VerificationKey } from '../../../base/json-web-keys.ts';
import { compileByteMatch, firstQueryValue, requestCookie } from '../../../data-plane/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import type { KeySource } from './key-source.ts';
import type { ProviderSettings } from './settings.ts';
import { fits, isSigned } from './signature.ts';
import { JwtStatus } from './status.ts';
import { parseToken, type Token } from './token.ts';

/** A longer one is not remembered. */
const MAX_CACHED_LENGTH = 4096;
/** The scheme of a credential knows no case (RFC 9110 section 11.1). */
const BEARER = /^bearer +/i;
/** Behind a token in a header. */
const END_OF_TOKEN = /[^A-Za-z0-9_.-]/;

export interface FoundToken {
  readonly text: string;
  /** The header that it stands in; empty for other places. */
  readonly header: string;
}

interface Verified {
  readonly token: Token;
  /** Of another set it may not be: keys are taken back. */
  readonly keys: readonly VerificationKey[];
}

export class Provider {
  readonly settings: ProviderSettings;
  readonly source: KeySource;
  readonly #isSubject: (subject: string) => boolean;
  readonly #audiences: ReadonlySet<string>;
  /** Tokens whose signature is good by a set of keys, the one used last at the end. */
  readonly #verified = new Map<string, Verified>();
  readonly #count: (name: 'cacheHit' | 'cacheMiss') => void;

  constructor(settings: ProviderSettings, source: KeySource, count: (name: 'cacheHit' | 'cacheMiss') => void) {
    this.settings = settings;
    this.source = source;
    this.#count = count;
    const { subjects } = settings;
    const passes = subjects === null ? null : compileByteMatch(subjects);
    this.#isSubject = passes === null ? () => true : (subject) => passes(utf8Bytes(subject));
    this.#audiences = audienceSet(settings.audiences);
  }

  /** Tokens of a request at the places of this provider, in their order. */
  tokensIn(head: RequestHead): readonly FoundToken[] {
    const { fromHeaders, fromParameters, fromCookies } = this.settings;
    const found: FoundToken[] = [];
    for (const { name, prefix } of fromHeaders) {
      const value = head.headerByName(name);
      const text = value === undefined ? '' : tokenOf(value, prefix);
      if (text !== '') found.push({ text, header: name });
    }
    if (fromParameters.length > 0) {
      const target = head.path();
      const mark = target.indexOf('?');
      for (const name of mark === -1 ? [] : fromParameters) {
        const text = firstQueryValue(target.slice(mark + 1), name) ?? '';
        if (text !== '') found.push({ text, header: '' });
      }
    }
    for (const name of fromCookies) {
      const text = requestCookie(head, name);
      if (text !== '') found.push({ text, header: '' });
    }
    return found;
  }

  /** As parseToken, which need not be asked for one that is known. */
  read(text: string): Token | JwtStatus {
    if (this.settings.cachedTokens === 0) return parseToken(text);
    const known = this.#verified.get(text);
    this.#count(known === undefined ? 'cacheMiss' : 'cacheHit');
    return known?.token ?? parseToken(text);
  }

  /**
   * @param audiences null for those of the provider. @param nowMs since the Unix epoch. @param given null for the keys that the source has.
   * @returns null where keys have to be waited for.
   */
  verify(
    text: string,
    token: Token,
    audiences: ReadonlySet<string> | null,
    nowMs: number,
    given: readonly VerificationKey[] | null,
  ): JwtStatus | null {
    const refusal = this.#refusal(token, audiences ?? this.#audiences, nowMs / 1000);
    if (refusal !== null) return refusal;
    const keys = given ?? this.source.keys();
    if (keys === null) return null;
    const known = this.#verified.get(text);
    if (known?.keys === keys) {
      this.#verified.delete(text);
      this.#verified.set(text, known);
      return JwtStatus.ok;
    }
    const { algorithm, keyId, signed, signature } = token;
    let fitting = 0;
    for (const key of keys) {
      if (!fits(key, algorithm) || (keyId !== '' && key.id !== null && key.id !== keyId)) continue;
      fitting += 1;
      if (!isSigned(key, algorithm, signed, signature)) continue;
      this.#remember(text, { token, keys });
      return JwtStatus.ok;
    }
    return fitting === 0 ? JwtStatus.noKey : JwtStatus.verificationFails;
  }

  #refusal(token: Token, audiences: ReadonlySet<string>, nowSeconds: number): JwtStatus | null {
    const { issuer, skewSeconds, needsExpiration, maxLifetimeMs } = this.settings;
    const { expires, notBefore } = token;
    if (issuer !== '' && token.issuer !== issuer) return JwtStatus.unknownIssuer;
    if (notBefore !== null && notBefore > nowSeconds + skewSeconds) return JwtStatus.notYetValid;
    if (expires !== null && expires + skewSeconds < nowSeconds) return JwtStatus.expired;
    if (!this.#isSubject(token.subject)) return JwtStatus.verificationFails;
    const isBounded = maxLifetimeMs !== Number.POSITIVE_INFINITY;
    if (expires === null && (needsExpiration || isBounded)) return JwtStatus.verificationFails;
    if (isBounded && (expires! - nowSeconds) * 1000 > maxLifetimeMs) return JwtStatus.verificationFails;
    const isMeant = audiences.size === 0 || token.audiences.some((audience) => audiences.has(plainAudience(audience)));
    return isMeant ? null : JwtStatus.audienceNotAllowed;
  }

  #remember(text: string, verified: Verified): void {
    const { cachedTokens } = this.settings;
    if (cachedTokens === 0 || text.length > MAX_CACHED_LENGTH) return;
    this.#verified.delete(text);
    this.#verified.set(text, verified);
    if (this.#verified.size > cachedTokens) this.#verified.delete(this.#verified.keys().next().value!);
  }
}

export function audienceSet(audiences: readonly string[]): ReadonlySet<string> {
  return new Set(audiences.map(plainAudience));
}

/** Some write a URL, some the name in it. */
function plainAudience(audience: string): string {
  return audience.replace(/^https?:\/\//, '').replace(/\/$/, '');
}

/** @returns empty text where there is none. */
function tokenOf(value: string, prefix: string): string {
  let rest = value;
  if (prefix === 'Bearer ') {
    if (!BEARER.test(value)) return '';
    rest = value.replace(BEARER, '');
  } else if (prefix !== '') {
    const at = value.indexOf(prefix);
    if (at === -1) return '';
    rest = value.slice(at + prefix.length);
  }
  const text = rest.trim();
  const end = text.search(END_OF_TOKEN);
  return end === -1 ? text : text.slice(0, end);
}

/** What a claim says in a header, as byte text; undefined for objects, lists and what is not there. */
export function claimText({ claims }: Token, path: readonly string[]): string | undefined {
  const value = jsonAt(claims, path);
  if (typeof value === 'string') return utf8Bytes(value);
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}
