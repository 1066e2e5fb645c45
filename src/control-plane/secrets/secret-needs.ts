// The secrets that somebody waits for before it serves, and keeps while it does. Main thread.

import type { SecretReference, TlsSettings } from '../../snapshot/index.ts';
import type { ResourceLease } from '../discovery/resource-lease.ts';
import type { SecretLeases } from './secrets.ts';

export class SecretNeeds {
  readonly leases: readonly ResourceLease[];

  /** @returns undefined where nothing comes by discovery. */
  static of(contexts: Iterable<TlsSettings | undefined>, secrets: SecretLeases): SecretNeeds | undefined {
    const wanted: SecretReference[] = [];
    for (const context of contexts) wanted.push(...(context?.secrets ?? []));
    return wanted.length === 0 ? undefined : new SecretNeeds(wanted.map((secret) => secrets.lease(secret)));
  }

  private constructor(leases: readonly ResourceLease[]) {
    this.leases = leases;
  }

  /** Those that are waited for, as listings name them. */
  get targets(): readonly string[] {
    return [...new Set(this.leases.flatMap(({ target, isReady }) => (isReady ? [] : target)))];
  }

  /** Resolves when none is waited for any longer; perhaps never behind `release`. */
  async whenMet(): Promise<void> {
    for (const { whenReady } of this.leases) await whenReady;
  }

  /** Idempotent. */
  release(): void {
    for (const lease of this.leases) lease.release();
  }
}
