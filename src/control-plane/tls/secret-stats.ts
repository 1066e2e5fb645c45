// What is counted of secrets in files, sds.<name>.*, while somebody uses them. Main thread.

import type { Clock } from '../../base/clock.ts';
import type { TlsFile } from '../../snapshot/index.ts';
import { type Scope, SECRET_STATS, type StatsStore } from '../../stats/index.ts';
import { SubscriptionStats } from '../subscription/subscription-stats.ts';

/** Of one reading. */
export interface SecretOutcome {
  /** Of the file that holds the message; undefined where only files have changed that it names. */
  response: 'updated' | 'rejected' | 'failed' | undefined;
  /** Of those that it names. */
  hasRotationFailed: boolean;
}

interface Counted {
  users: number;
  readonly scope: Scope;
  readonly subscription: SubscriptionStats;
}

export class SecretStats {
  readonly #stats: Pick<StatsStore, 'scope'>;
  readonly #clock: Clock;
  readonly #counted = new Map<string, Counted>();

  constructor(stats: Pick<StatsStore, 'scope'>, clock: Clock) {
    this.#stats = stats;
    this.#clock = clock;
  }

  /** Somebody uses the secrets in these files, which have been read. */
  hold(files: readonly TlsFile[]): void {
    for (const name of secretsIn(files)) {
      const known = this.#counted.get(name);
      if (known !== undefined) {
        known.users += 1;
        continue;
      }
      const prefix = `sds.${name}.`;
      const scope = this.#stats.scope(prefix);
      scope.allocate(SECRET_STATS);
      const subscription = SubscriptionStats.under(this.#stats, prefix, this.#clock);
      subscription.attempt().updated('');
      this.#counted.set(name, { users: 1, scope, subscription });
    }
  }

  release(files: readonly TlsFile[]): void {
    for (const name of secretsIn(files)) {
      const counted = this.#counted.get(name);
      if (counted === undefined) continue;
      counted.users -= 1;
      if (counted.users > 0) continue;
      this.#counted.delete(name);
      counted.scope.close();
      counted.subscription.close();
    }
  }

  attempted(secret: string, { response, hasRotationFailed }: SecretOutcome): void {
    const counted = this.#counted.get(secret);
    if (counted === undefined) return;
    if (hasRotationFailed) counted.scope.allocate(SECRET_STATS).add('key_rotation_failed');
    if (response === undefined) return;
    const attempt = counted.subscription.attempt();
    if (response === 'updated') attempt.updated('');
    else attempt[response]();
  }
}

function secretsIn(files: readonly TlsFile[]): ReadonlySet<string> {
  return new Set(files.flatMap(({ secret, holdsSecret }) => (holdsSecret && secret !== undefined ? [secret] : [])));
}
