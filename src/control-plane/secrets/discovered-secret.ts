// One secret that comes by discovery: asks for it, and keeps its message for the TLS contexts that are made of it. What may not be
// leaves the one before it; what its source has no more stays as well, for connections are not to fail because a list was short for
// a moment. Nothing of what it holds is in any log or answer. Main thread.

import type { Clock } from '../../base/clock.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import {
  type DiscoverableResources,
  type DiscoveredResponse,
  readStoredResource,
  type SecretMessage,
  type SecretReading,
} from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import type { SecretReference, TlsFile } from '../../snapshot/index.ts';
import { SECRET_STATS } from '../../stats/index.ts';
import { Holdings, type HoldingsSource } from '../holdings.ts';
import type { ResourceRecord } from '../resource-record.ts';
import type { FileWatches } from '../subscription/file-watches.ts';
import { FirstAnswer } from '../subscription/first-answer.ts';
import type { Subscription, SubscriptionOwner, Subscriptions } from '../subscription/subscription.ts';
import { SubscriptionStats } from '../subscription/subscription-stats.ts';

export interface DiscoveredSecretDependencies extends HoldingsSource {
  readonly subscriptions: Subscriptions;
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  readonly watches: Pick<FileWatches, 'follow'>;
  /** XXH64. */
  readonly hash: (text: string) => bigint;
  /** Of the bootstrap in force. */
  readonly discoverable: () => DiscoverableResources;
  readonly onDeprecatedFields: (fields: ReadonlyMap<string, number>) => void;
}

export interface DumpedSecret {
  readonly name: string;
  /** When it was asked for first, milliseconds since the Unix epoch. */
  readonly sinceMs: number;
  /** Undefined before the first. */
  readonly accepted: ResourceRecord | undefined;
  /** The last one, where none has been accepted since. */
  readonly refused: ResourceRecord | undefined;
}

/** Whoever wants it as the same thing. */
interface Use extends Pick<SecretReference, 'kind' | 'isOverlay'> {
  users: number;
}

interface Known {
  readonly message: Uint8Array;
  readonly version: string;
  readonly updatedMs: number;
}

/** More than a tick of the system, by which files are dated. */
const TICK_MS = 50;

export class DiscoveredSecret implements SubscriptionOwner<SecretMessage> {
  readonly name: string;
  readonly #deps: DiscoveredSecretDependencies;
  readonly #isFile: boolean;
  readonly #sinceMs: number;
  readonly #onChanged: () => Promise<void>;
  readonly #onUnused: () => void;
  readonly #uses = new Map<string, Use>();
  readonly #holdings: Holdings;
  readonly #stats: SubscriptionStats;
  readonly #block;
  readonly #answer: FirstAnswer;
  readonly #subscription: Subscription;
  #reading: SecretReading | undefined;
  #accepted: { readonly secret: SecretMessage; readonly known: Known } | null = null;
  #failure: { readonly known: Known; readonly error: string } | null = null;
  /** Files that the refused one names: it may be right when they are. */
  #endWatch = (): void => {};
  #isClosed = false;

  /**
   * @param onChanged resolves when contexts are made of another one.
   * @param onUnused called when nobody wants it any more.
   */
  constructor(
    { name, source }: Pick<SecretReference, 'name' | 'source'>,
    deps: DiscoveredSecretDependencies,
    onChanged: () => Promise<void>,
    onUnused: () => void,
  ) {
    const { clock, hash, log, subscriptions } = deps;
    this.name = name;
    this.#deps = deps;
    this.#isFile = source.origin.kind === 'file';
    this.#sinceMs = clock.wallMs();
    this.#onChanged = onChanged;
    this.#onUnused = onUnused;
    const prefix = `sds.${name}.`;
    this.#holdings = new Holdings(deps);
    this.#stats = SubscriptionStats.under(this.#holdings, prefix, clock, hash);
    this.#block = this.#holdings.scope(prefix).allocate(SECRET_STATS);
    this.#answer = new FirstAnswer(`secret ${name}`, source.initialFetchTimeoutMs, { clock, log, stats: this.#stats });
    this.#subscription = subscriptions.subscribe({
      source,
      names: new Set([name]),
      type: () => this.#read().type,
      stats: this.#stats,
      owner: this,
      followsWrites: true,
    });
  }

  /** Once, when the first lease has been given. */
  start(): void {
    this.#subscription.start();
  }

  /** Undefined before it has come. */
  get secret(): SecretMessage | undefined {
    return this.#accepted?.secret;
  }

  /** It has come, or is not waited for any longer. */
  get isReady(): boolean {
    return this.#answer.isOver;
  }

  /** Resolves with that. */
  get whenReady(): Promise<void> {
    return this.#answer.promise;
  }

  /** @returns what gives it back, once. */
  lease({ kind, isOverlay }: Pick<SecretReference, 'kind' | 'isOverlay'>): () => void {
    const key = `${kind} ${isOverlay}`;
    const use = this.#uses.get(key) ?? { kind, isOverlay, users: 0 };
    this.#uses.set(key, use);
    use.users += 1;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      use.users -= 1;
      if (use.users === 0) this.#uses.delete(key);
      if (this.#uses.size === 0) this.#end();
    };
  }

  /** Files that it names have changed, and cannot be used. */
  rotationFailed(): void {
    this.#block.add('key_rotation_failed');
  }

  /** As it is, and as it could not be. */
  dump(): DumpedSecret {
    const { name } = this;
    const own = { name, addedViaApi: true };
    const accepted = this.#accepted && { ...own, ...this.#accepted.known, state: 'active' as const, error: '' };
    const { known, error } = this.#failure ?? {};
    const refused = known && { ...own, ...known, state: 'failed' as const, error: error! };
    return { name, sinceMs: this.#sinceMs, accepted: accepted ?? undefined, refused };
  }

  onFailed(): void {
    this.#answer.came();
  }

  async onResponse(response: DiscoveredResponse<SecretMessage>): Promise<readonly string[]> {
    if (this.#isClosed) return [];
    const { log, onDeprecatedFields } = this.#deps;
    const resources = [...response.offered()].map((offered) => offered.read());
    for (const { warnings } of resources) for (const warning of warnings) log.warning(warning);
    const own = resources.filter(({ name }) => name === this.name);
    const strange = resources.flatMap((resource) => (resource.isGood || resource.name !== '' ? [] : resource.errors));
    const [resource] = own;
    if (resource === undefined) return this.#noteAbsence(response, strange);
    const { message, version = response.version } = resource;
    if (own.length > 1) return this.#refuse(message, version, [`it comes ${own.length} times`]);
    if (!resource.isGood) return this.#refuse(message, version, resource.errors);
    onDeprecatedFields(resource.deprecatedFields);
    await this.#accept(resource.resource, message, version);
    return strange;
  }

  #read(): SecretReading {
    const reading = this.#deps.discoverable().secrets([...this.#uses.values()]);
    this.#reading = reading;
    return reading;
  }

  /** Servers tell of those that they have; a file is all there is. */
  #noteAbsence({ extent, removed }: DiscoveredResponse<SecretMessage>, strange: readonly string[]): readonly string[] {
    if (removed.includes(this.name)) {
      const what = this.#accepted === null ? 'there is none yet' : 'the one before it stays';
      this.#deps.log.info(`secret ${this.name} is not among what its source has: ${what}`);
    }
    if (!this.#isFile || extent !== 'all') return strange;
    this.#answer.came();
    return [...strange, `it holds no secret ${JSON.stringify(this.name)}`];
  }

  #refuse(message: Uint8Array, version: string, errors: readonly string[]): readonly string[] {
    const { clock, watches } = this.#deps;
    this.#failure = { known: { message, version, updatedMs: clock.wallMs() }, error: errors.join('; ') };
    this.#answer.came();
    const files: readonly TlsFile[] = this.#reading?.files ?? [];
    this.#endWatch();
    this.#endWatch = watches.follow(files, clock.wallMs() - TICK_MS, () => this.#tryAgain());
    return errors.map((error) => `secret ${this.name}: ${error}`);
  }

  /** Files that the refused one names are others. */
  #tryAgain(): void {
    const failed = this.#failure?.known;
    if (failed === undefined || this.#isClosed) return;
    const { message, version } = failed;
    const secret = readStoredResource(this.#read().type, message);
    if (secret === undefined) return;
    const attempt = this.#stats.attempt();
    this.#deps.log.info(`secret ${this.name} is right now that its files are`);
    this.#deps.faults.run(`taking over secret ${this.name}`, async () => {
      await this.#accept(secret, message, version);
      attempt.updated(version);
    });
  }

  async #accept(secret: SecretMessage, message: Uint8Array, version: string): Promise<void> {
    const { clock, log } = this.#deps;
    const former = this.#accepted?.known;
    this.#accepted = { secret, known: { message, version, updatedMs: clock.wallMs() } };
    this.#failure = null;
    this.#endWatch();
    this.#answer.came();
    if (former !== undefined && Buffer.from(message).equals(former.message)) return;
    log.info(`secret ${this.name} has ${former === undefined ? 'come' : 'been taken over'}`);
    await this.#onChanged();
  }

  #end(): void {
    this.close();
    this.#holdings.close();
    this.#onUnused();
  }

  /** Nothing is asked for any more. */
  close(): void {
    this.#isClosed = true;
    this.#endWatch();
    this.#subscription.close();
    this.#answer.close();
  }
}
