// One secret that comes by discovery: asks for it, and keeps its message for the TLS contexts that are made of it. What may not be
// leaves the one before it; what its source has no more stays as well, for connections are not to fail because a list was short for
// a moment. Nothing of what it holds is in any log or answer. Main thread.

import { readStoredResource, type SecretMessage, type SecretReading } from '../../config/index.ts';
import type { SecretReference, TlsFile } from '../../snapshot/index.ts';
import { SECRET_STATS } from '../../stats/index.ts';
import type { DiscoveryDependencies } from '../discovery/feed.ts';
import {
  type DumpedResource,
  isSameMessage,
  NamedResource,
  type ReceivedResource,
} from '../discovery/named-resource.ts';
import type { Awaited } from '../discovery/resource-lease.ts';
import { SharedByKey } from '../shared-by-key.ts';
import type { FileWatches } from '../subscription/file-watches.ts';

export interface DiscoveredSecretDependencies extends DiscoveryDependencies {
  readonly watches: Pick<FileWatches, 'follow'>;
}

export interface DumpedSecret extends DumpedResource {
  /** When it was asked for first, milliseconds since the Unix epoch. */
  readonly sinceMs: number;
}

/** What it is wanted as. */
type Use = Pick<SecretReference, 'kind' | 'isOverlay'>;

/** More than a tick of the system, by which files are dated. */
const TICK_MS = 50;

export class DiscoveredSecret implements Awaited {
  readonly name: string;
  readonly #deps: DiscoveredSecretDependencies;
  readonly #isFile: boolean;
  readonly #sinceMs: number;
  readonly #onChanged: () => Promise<void>;
  readonly #uses = new SharedByKey<Use>(() => {});
  readonly #resource: NamedResource<SecretMessage>;
  readonly #block;
  #reading: SecretReading | undefined;
  #secret: SecretMessage | undefined;
  /** Files that the refused one names: it may be right when they are. */
  #endWatch = (): void => {};

  /** @param onChanged resolves when contexts are made of another one. */
  constructor(
    { name, source }: Pick<SecretReference, 'name' | 'source'>,
    deps: DiscoveredSecretDependencies,
    onChanged: () => Promise<void>,
  ) {
    this.name = name;
    this.#deps = deps;
    this.#isFile = source.origin.kind === 'file';
    this.#sinceMs = deps.clock.wallMs();
    this.#onChanged = onChanged;
    const statPrefix = `sds.${name}.`;
    this.#resource = new NamedResource(
      {
        name,
        kind: 'secret',
        source,
        statPrefix,
        type: () => this.#read().type,
        followsWrites: true,
        // Servers tell of those that they have; a file is all there is.
        isAnswer: ({ names, extent }) => names.includes(name) || (this.#isFile && extent === 'all'),
        accept: (secret, received, former) => this.#accept(secret, received, former),
        onRefused: () => this.#watchFiles(),
        onAbsent: (_, { removed, extent }) => this.#noteAbsence(removed, extent === 'all'),
      },
      deps,
    );
    this.#block = this.#resource.feed.holdings.scope(statPrefix).allocate(SECRET_STATS);
  }

  /** Once, when the first lease has been given. */
  start(): void {
    this.#resource.feed.start();
  }

  /** Undefined before it has come. */
  get secret(): SecretMessage | undefined {
    return this.#secret;
  }

  get isReady(): boolean {
    return this.#resource.feed.isReady;
  }

  get whenReady(): Promise<void> {
    return this.#resource.feed.whenReady;
  }

  /** @returns what gives it back, once. */
  lease({ kind, isOverlay }: Use): () => void {
    return this.#uses.lease(`${kind} ${isOverlay}`, () => ({ kind, isOverlay })).release;
  }

  /** Files that it names have changed, and cannot be used. */
  rotationFailed(): void {
    this.#block.add('key_rotation_failed');
  }

  /** As it is, and as it could not be. */
  dump(): DumpedSecret {
    return { ...this.#resource.dump(), sinceMs: this.#sinceMs };
  }

  #read(): SecretReading {
    const reading = this.#deps.discoverable().secrets([...this.#uses]);
    this.#reading = reading;
    return reading;
  }

  #noteAbsence(removed: readonly string[], isAll: boolean): readonly string[] {
    if (removed.includes(this.name)) {
      const what = this.#resource.accepted === undefined ? 'there is none yet' : 'the one before it stays';
      this.#deps.log.info(`secret ${this.name} is not among what its source has: ${what}`);
    }
    return this.#isFile && isAll ? [`it holds no secret ${JSON.stringify(this.name)}`] : [];
  }

  #watchFiles(): void {
    const { clock, watches } = this.#deps;
    const files: readonly TlsFile[] = this.#reading?.files ?? [];
    this.#endWatch();
    this.#endWatch = watches.follow(files, clock.wallMs() - TICK_MS, () => this.#tryAgain());
  }

  /** Files that the refused one names are others. */
  #tryAgain(): void {
    const { failure, feed } = this.#resource;
    if (failure === undefined || feed.isStopped) return;
    const { message, version } = failure;
    const secret = readStoredResource(this.#read().type, message);
    if (secret === undefined) return;
    const attempt = feed.stats.attempt();
    const { clock, faults, log } = this.#deps;
    log.info(`secret ${this.name} is right now that its files are`);
    faults.run(`taking over secret ${this.name}`, async () => {
      await this.#resource.accept(secret, { message, version, updatedMs: clock.wallMs() });
      attempt.updated(version);
    });
  }

  async #accept(secret: SecretMessage, received: ReceivedResource, former?: ReceivedResource): Promise<void> {
    this.#secret = secret;
    this.#endWatch();
    if (isSameMessage(received, former)) return;
    this.#deps.log.info(`secret ${this.name} has ${former === undefined ? 'come' : 'been taken over'}`);
    await this.#onChanged();
  }

  /** Nothing is asked for any more. */
  stop(): void {
    this.#endWatch();
    this.#resource.feed.stop();
  }

  /** Nobody wants it any more. Once. */
  close(): void {
    this.stop();
    this.#resource.feed.close();
  }
}
