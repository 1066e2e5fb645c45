// Whether the tokens of one request are those that it needs. It is judged from the beginning each time; where keys have to be waited for, it says whose.

import type { VerificationKey } from '../../../base/json-web-keys.ts';
import type { KeySource } from './key-source.ts';
import { audienceSet, type FoundToken, type Provider } from './provider.ts';
import type { Requirement } from './settings.ts';
import { JwtStatus } from './status.ts';
import { parseToken, type Token } from './token.ts';

/** A requirement, ready to be judged. */
export type Check =
  | { readonly kind: 'nothing' | 'missing' | 'missing-or-failed' | 'unverified' }
  | { readonly kind: 'provider'; readonly provider: Provider; readonly audiences: ReadonlySet<string> | null }
  | { readonly kind: 'any' | 'all'; readonly of: readonly Check[] };

export function compileCheck(requirement: Requirement, providers: ReadonlyMap<string, Provider>): Check {
  switch (requirement.kind) {
    case 'any':
    case 'all':
      return { kind: requirement.kind, of: requirement.of.map((part) => compileCheck(part, providers)) };
    case 'provider': {
      const { audiences } = requirement;
      const provider = providers.get(requirement.provider)!;
      return { kind: 'provider', provider, audiences: audiences && audienceSet(audiences) };
    }
    default:
      return { kind: requirement.kind };
  }
}

/** A token that is good, or that nobody wants to be verified. */
export interface Accepted {
  readonly provider: Provider;
  readonly token: Token;
  readonly found: FoundToken;
}

/** Keys that have to be waited for. */
export interface Pending {
  readonly source: KeySource;
}

export type WaitedKeys = ReadonlyMap<KeySource, readonly VerificationKey[] | null>;

export type Outcome = JwtStatus | Pending;

export class Judgement {
  readonly accepted: Accepted[] = [];
  /** What was wrong with the last token of a provider, and without a token of anybody's, where there is but one provider. */
  readonly failed = new Map<Provider, JwtStatus>();
  readonly #providers: readonly Provider[];
  readonly #tokens: ReadonlyMap<Provider, readonly FoundToken[]>;
  readonly #nowMs: number;
  /** Keys that have been waited for; null for those that have not come. */
  readonly #waited: WaitedKeys;

  /** @param nowMs since the Unix epoch. */
  constructor(tokens: ReadonlyMap<Provider, readonly FoundToken[]>, nowMs: number, waited: WaitedKeys) {
    this.#providers = [...tokens.keys()];
    this.#tokens = tokens;
    this.#nowMs = nowMs;
    this.#waited = waited;
  }

  of(check: Check): Outcome {
    switch (check.kind) {
      case 'nothing':
        return JwtStatus.ok;
      case 'provider':
        return this.#ofProvider(check.provider, check.audiences);
      case 'all':
        return this.#ofAll(check.of);
      case 'any':
        return this.#ofAny(check.of);
      case 'missing': {
        const outcome = this.#ofWhatThereIs();
        return outcome === JwtStatus.missing ? JwtStatus.ok : outcome;
      }
      case 'missing-or-failed': {
        const outcome = this.#ofWhatThereIs();
        return typeof outcome === 'string' ? JwtStatus.ok : outcome;
      }
      case 'unverified':
        this.#acceptUnverified();
        return JwtStatus.ok;
    }
  }

  /** Each token at its places has to be good. */
  #ofProvider(provider: Provider, audiences: ReadonlySet<string> | null): Outcome {
    const tokens = this.#tokens.get(provider)!;
    if (tokens.length === 0) return this.#fail(null, JwtStatus.missing);
    for (const found of tokens) {
      const token = provider.read(found.text);
      if (typeof token === 'string') return this.#fail(provider, token);
      const outcome = this.#verify(provider, found, token, audiences);
      if (outcome !== JwtStatus.ok) return outcome;
    }
    return JwtStatus.ok;
  }

  #ofAll(checks: readonly Check[]): Outcome {
    for (const check of checks) {
      const outcome = this.of(check);
      if (outcome !== JwtStatus.ok) return outcome;
    }
    return JwtStatus.ok;
  }

  /** The first that is good counts; else what is wrong with a token, before that there is none. */
  #ofAny(checks: readonly Check[]): Outcome {
    let worst: JwtStatus = JwtStatus.missing;
    for (const check of checks) {
      const outcome = this.of(check);
      if (outcome === JwtStatus.ok || typeof outcome !== 'string') return outcome;
      const saysLittle = worst === JwtStatus.missing || worst === JwtStatus.unknownIssuer;
      if (saysLittle && outcome !== JwtStatus.missing) worst = outcome;
    }
    return worst;
  }

  /** Tokens at the places of all providers, by the providers of their issuers. All are looked at. */
  #ofWhatThereIs(): Outcome {
    let first: JwtStatus = JwtStatus.missing;
    const seen = new Set<string>();
    for (const [provider, tokens] of this.#tokens) {
      for (const found of tokens) {
        const place = `${found.header}\n${found.text}`;
        if (seen.has(place)) continue;
        seen.add(place);
        const outcome = this.#ofIssuer(found, provider);
        if (typeof outcome !== 'string') return outcome;
        if (first === JwtStatus.missing || first === JwtStatus.ok) first = outcome;
      }
    }
    return first === JwtStatus.missing ? this.#fail(null, first) : first;
  }

  /** All that can be read: of each provider the tokens at its places that name its issuer. */
  #acceptUnverified(): void {
    for (const [provider, tokens] of this.#tokens) {
      const { issuer } = provider.settings;
      for (const found of tokens) {
        const token = parseToken(found.text);
        if (typeof token === 'string') this.#fail(provider, token);
        else if (issuer === '' || issuer === token.issuer) this.accepted.push({ provider, token, found });
      }
    }
  }

  #ofIssuer(found: FoundToken, place: Provider): Outcome {
    const token = parseToken(found.text);
    if (typeof token === 'string') return this.#fail(null, token);
    const isMeant = ({ settings }: Provider): boolean => settings.issuer === token.issuer;
    const provider = isMeant(place)
      ? place
      : this.#providers.find((other) => isMeant(other) && this.#hasAt(other, found));
    if (provider === undefined) return this.#fail(null, JwtStatus.unknownIssuer);
    return this.#verify(provider, found, token, null);
  }

  #hasAt(provider: Provider, { text, header }: FoundToken): boolean {
    return this.#tokens.get(provider)!.some((other) => other.text === text && other.header === header);
  }

  #verify(provider: Provider, found: FoundToken, token: Token, audiences: ReadonlySet<string> | null): Outcome {
    const { source } = provider;
    // What has been waited for counts, however short its time.
    const waited = this.#waited.get(source);
    const status = provider.verify(found.text, token, audiences, this.#nowMs, waited ?? null);
    if (status === null) return waited === null ? this.#fail(provider, JwtStatus.fetchFailed) : { source };
    if (status !== JwtStatus.ok) return this.#fail(provider, status);
    this.accepted.push({ provider, token, found });
    return status;
  }

  /** @param provider whose token it is; null for nobody's. */
  #fail(provider: Provider | null, status: JwtStatus): JwtStatus {
    const told = provider ?? (this.#providers.length === 1 ? this.#providers[0]! : null);
    if (told !== null) this.failed.set(told, status);
    return status;
  }
}
