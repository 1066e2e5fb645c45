// The secrets that come by discovery: one for each name and source, whoever wants it, for as long as anybody does. Main thread.

import type { SecretMessage } from '../../config/index.ts';
import type { ConfigSourceSettings, SecretReference } from '../../snapshot/index.ts';
import { settingsText } from '../same-settings.ts';
import { DiscoveredSecret, type DiscoveredSecretDependencies, type DumpedSecret } from './discovered-secret.ts';

/** A secret that somebody wants. */
export interface SecretLease {
  readonly name: string;
  /** As listings name what is waited for. */
  readonly target: string;
  /** It has come, or is not waited for any longer. */
  readonly isReady: boolean;
  /** Resolves with that; perhaps never when it has been given back. */
  readonly whenReady: Promise<void>;
  /** Idempotent. */
  release(): void;
}

export interface SecretLeases {
  lease(secret: SecretReference): SecretLease;
}

/** Has what is made of a secret be made anew. @returns when it is. */
export type OnSecretChanged = (key: string, name: string) => Promise<void>;

export class Secrets implements SecretLeases {
  readonly #deps: DiscoveredSecretDependencies;
  readonly #secrets = new Map<string, DiscoveredSecret>();
  onChanged: OnSecretChanged = async () => {};

  constructor(deps: DiscoveredSecretDependencies) {
    this.#deps = deps;
  }

  lease(reference: SecretReference): SecretLease {
    const key = secretKey(reference.name, reference.source);
    const known = this.#secrets.get(key);
    const secret = known ?? this.#open(key, reference);
    const release = secret.lease(reference);
    if (known === undefined) secret.start();
    return {
      name: reference.name,
      target: `SdsApi ${reference.name}`,
      get isReady() {
        return secret.isReady;
      },
      whenReady: secret.whenReady,
      release,
    };
  }

  /** Undefined for one that has not come. */
  find(name: string, source: ConfigSourceSettings): SecretMessage | undefined {
    return this.#secrets.get(secretKey(name, source))?.secret;
  }

  /** Files that secrets of a name say that they consist of cannot be used. */
  rotationFailed(name: string): void {
    for (const secret of this.#secrets.values()) if (secret.name === name) secret.rotationFailed();
  }

  /** All that are wanted. */
  dump(): DumpedSecret[] {
    return [...this.#secrets.values()].map((secret) => secret.dump());
  }

  /** Those that could not be had, and why. */
  failures(): Iterable<{ readonly name: string; readonly error: string }> {
    return this.dump().flatMap(({ refused }) => refused ?? []);
  }

  /** Nothing is asked for any more. */
  close(): void {
    for (const secret of this.#secrets.values()) secret.close();
  }

  #open(key: string, reference: SecretReference): DiscoveredSecret {
    const onChanged = (): Promise<void> => this.onChanged(key, reference.name);
    const secret = new DiscoveredSecret(reference, this.#deps, onChanged, () => this.#secrets.delete(key));
    this.#secrets.set(key, secret);
    return secret;
  }
}

/** The same for all who want the same secret from the same source. */
export function secretKey(name: string, source: ConfigSourceSettings): string {
  return settingsText([name, source])!;
}
