// Where the keys of a provider come from. Those of a server are fetched by each worker for itself, through its own connections to the
// cluster: main speaks no TLS to clusters, and keys that anybody on the way can change are worth nothing.
//
//   none ──asked──► fetching ──set of keys──► fresh ──cache_duration──► none, or stale while an eager source fetches anew
//     ▲                │ failure: again after a wait, as often as retry_policy says
//     └────────────────┘ then those who wait hear of it

import { parseKeySet, type VerificationKey } from '../../../base/json-web-keys.ts';
import type { CallAnswer, CallReceiver, FilterContext, FilterCounter } from '../../../data-plane/index.ts';
import type { LocalKeys, RemoteKeys } from './settings.ts';

const MAX_SET_BYTES = 1024 * 1024;

export type TakeKeys = (keys: readonly VerificationKey[] | null) => void;

export interface KeySource {
  /** Null where they have to be waited for. */
  keys(): readonly VerificationKey[] | null;
  /** Tells once which keys there are, or null for none that could be had; perhaps from within this call. @returns what calls it off. */
  wait(then: TakeKeys): () => void;
}

export function openKeys(
  settings: LocalKeys | RemoteKeys,
  context: FilterContext,
  counts: { readonly fetchSuccess: FilterCounter; readonly fetchFailed: FilterCounter },
): KeySource {
  return settings.kind === 'remote' ? new RemoteSource(settings, context, counts) : new LocalSource(settings);
}

class LocalSource implements KeySource {
  readonly #keys: readonly VerificationKey[];

  constructor({ text }: LocalKeys) {
    this.#keys = parseKeySet(text).keys ?? [];
  }

  keys(): readonly VerificationKey[] {
    return this.#keys;
  }

  wait(then: TakeKeys): () => void {
    then(this.#keys);
    return () => undefined;
  }
}

class RemoteSource implements KeySource, CallReceiver {
  readonly #settings: RemoteKeys;
  readonly #context: FilterContext;
  readonly #succeeded: FilterCounter;
  readonly #failed: FilterCounter;
  #keys: readonly VerificationKey[] | null = null;
  /** By the monotonic clock. */
  #freshUntilMs = 0;
  #isFetching = false;
  #triesLeft = 0;
  #boundMs = 0;
  #waitUntilMs = 0;
  readonly #waiting = new Set<TakeKeys>();

  constructor(
    settings: RemoteKeys,
    context: FilterContext,
    counts: { readonly fetchSuccess: FilterCounter; readonly fetchFailed: FilterCounter },
  ) {
    this.#settings = settings;
    this.#context = context;
    this.#succeeded = counts.fetchSuccess;
    this.#failed = counts.fetchFailed;
    if (settings.isEager) this.#fetch();
  }

  keys(): readonly VerificationKey[] | null {
    const nowMs = this.#context.clock.monotonicMs();
    if (this.#keys === null || nowMs < this.#freshUntilMs) return this.#keys;
    // Keys that have been taken back must not count for longer than somebody has to expect.
    if (!this.#settings.isEager || nowMs >= this.#freshUntilMs + this.#settings.cacheMs) return null;
    if (!this.#isFetching && nowMs >= this.#waitUntilMs) this.#fetch();
    return this.#keys;
  }

  wait(then: TakeKeys): () => void {
    this.#waiting.add(then);
    if (!this.#isFetching) this.#fetch();
    return () => this.#waiting.delete(then);
  }

  onAnswer({ status, body }: CallAnswer): void {
    const keys = status === 200 ? parseKeySet(body.toString()).keys : undefined;
    if (keys === undefined) {
      this.onCallFailure();
      return;
    }
    this.#succeeded.add(1);
    this.#keys = keys;
    this.#freshUntilMs = this.#context.clock.monotonicMs() + this.#settings.cacheMs;
    this.#end(keys);
  }

  onCallFailure(): void {
    const { clock } = this.#context;
    const { backoffMaxMs, failedRefetchMs } = this.#settings;
    this.#failed.add(1);
    if (this.#triesLeft > 0) {
      this.#triesLeft -= 1;
      const waitMs = Math.max(1, this.#context.random() % this.#boundMs);
      this.#boundMs = Math.min(this.#boundMs * 2, backoffMaxMs);
      clock.after(waitMs, () => this.#call());
      return;
    }
    this.#waitUntilMs = clock.monotonicMs() + failedRefetchMs;
    this.#end(null);
  }

  #fetch(): void {
    this.#isFetching = true;
    this.#triesLeft = this.#settings.retries;
    this.#boundMs = Math.max(1, this.#settings.backoffBaseMs);
    this.#call();
  }

  #call(): void {
    const { cluster, host, path, timeoutMs } = this.#settings;
    const fields = [['accept', 'application/json']] as const;
    const request = { cluster, method: 'GET', path, host, fields, body: Buffer.alloc(0), isGrpc: false, timeoutMs };
    this.#context.call({ ...request, maxAnswerBytes: MAX_SET_BYTES }, this);
  }

  #end(keys: readonly VerificationKey[] | null): void {
    this.#isFetching = false;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    const faults: unknown[] = [];
    for (const then of waiting) {
      try {
        then(keys);
      } catch (error) {
        // The others have no part in it.
        faults.push(error);
      }
    }
    if (faults.length > 0) throw faults[0];
  }
}
