// The secrets that come by discovery: one for each name and source, whoever wants it, for as long as anybody does. Main thread.

import type { SecretMessage } from '../../config/index.ts';
import type { ConfigSourceSettings, SecretReference } from '../../snapshot/index.ts';
import { leaseOf, type ResourceLease } from '../discovery/resource-lease.ts';
import { settingsText } from '../same-settings.ts';
import { SharedByKey } from '../shared-by-key.ts';
import { DiscoveredSecret, type DiscoveredSecretDependencies, type DumpedSecret } from './discovered-secret.ts';

export interface SecretLeases {
  lease(secret: SecretReference): ResourceLease;
}

/** Has what is made of a secret be made anew. @returns when it is. */
export type OnSecretChanged = (key: string, name: string) => Promise<void>;

export class Secrets implements SecretLeases {
  readonly #deps: DiscoveredSecretDependencies;
  readonly #secrets = new SharedByKey<DiscoveredSecret>((secret) => secret.close());
  onChanged: OnSecretChanged = async () => {};

  constructor(deps: DiscoveredSecretDependencies) {
    this.#deps = deps;
  }

  lease(reference: SecretReference): ResourceLease {
    const { name, source } = reference;
    const key = secretKey(name, source);
    const make = () => new DiscoveredSecret(reference, this.#deps, () => this.onChanged(key, name));
    const shared = this.#secrets.lease(key, make);
    const secret = shared.thing;
    const endUse = secret.lease(reference);
    if (shared.isNew) secret.start();
    const release = (): void => {
      endUse();
      shared.release();
    };
    return leaseOf({ name, target: `SdsApi ${name}` }, secret, release);
  }

  /** Undefined for one that has not come. */
  find(name: string, source: ConfigSourceSettings): SecretMessage | undefined {
    return this.#secrets.find(secretKey(name, source))?.secret;
  }

  /** Files that secrets of a name say that they consist of cannot be used. */
  rotationFailed(name: string): void {
    for (const secret of this.#secrets) if (secret.name === name) secret.rotationFailed();
  }

  /** All that are wanted. */
  dump(): DumpedSecret[] {
    return [...this.#secrets].map((secret) => secret.dump());
  }

  /** Those that could not be had, and why. */
  failures(): Iterable<{ readonly name: string; readonly error: string }> {
    return this.dump().flatMap(({ refused }) => refused ?? []);
  }

  /** Nothing is asked for any more. */
  close(): void {
    for (const secret of this.#secrets) secret.stop();
  }
}

/** The same for all who want the same secret from the same source. */
export function secretKey(name: string, source: ConfigSourceSettings): string {
  return settingsText([name, source])!;
}
