// EDS: the members come as an assignment from outside, whatever brings it. One that may not be is refused, and the members of before
// stay, as they do when there is none of the cluster's name; whose time is over they go. Who starts waits for the first answer, or
// as long as the source allows, and has the last assignment of its predecessor if none has come by then. Main thread.

import type { Clock } from '../../../base/clock.ts';
import { errorMessage } from '../../../base/errors.ts';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import {
  type DiscoveredResource,
  type DiscoveredResponse,
  type OfferedResource,
  type ResourceType,
  readStoredResource,
} from '../../../config/index.ts';
import type { Logger } from '../../../log/index.ts';
import type { AssignmentSettings, ConfigSourceSettings, EdsDiscoverySettings } from '../../../snapshot/index.ts';
import { FirstAnswer } from '../../subscription/first-answer.ts';
import { logWarnings } from '../../subscription/resource-warnings.ts';
import type { Subscription, SubscriptionOwner, Subscriptions } from '../../subscription/subscription.ts';
import { type SubscriptionCells, SubscriptionStats } from '../../subscription/subscription-stats.ts';
import type { Discovery } from './discovery.ts';

/** An assignment in force. */
export interface KnownAssignment {
  readonly resource: string;
  readonly version: string;
  /** When it came, in milliseconds since the Unix epoch. */
  readonly updatedMs: number;
  readonly message: Uint8Array;
  readonly source: ConfigSourceSettings;
}

/** One that may not be. */
export interface RefusedAssignment {
  readonly version: string;
  readonly updatedMs: number;
  readonly message: Uint8Array;
  readonly error: string;
}

/** What listings tell of the assignment of a cluster. */
export interface AssignmentRecord {
  /** How the last response ended: nothing has come yet, there is none, it is in force, or may not be. */
  readonly status: 'requested' | 'absent' | 'accepted' | 'refused';
  /** Undefined before the first. */
  readonly known: Omit<KnownAssignment, 'source'> | undefined;
  /** Of the last response, if it was. */
  readonly refused: RefusedAssignment | undefined;
}

export interface EdsListener {
  /** @returns false when nothing has changed. @throws WeirError WEIR_SHARED_MEMORY_FULL; all is as before then. */
  onAssignment(assignment: AssignmentSettings): boolean;
  /** There are no members any more, and nothing is said of their cluster. */
  onStale(): void;
  /** The first answer has come, or nobody waits for it any longer. Once. */
  onReady(): void;
  /** That of the cluster whose place this one takes, if it has one. */
  former(): KnownAssignment | undefined;
}

export interface EdsStats extends SubscriptionCells {
  count(name: 'update_empty' | 'update_no_rebuild' | 'assignment_stale' | AssignmentEvent): void;
}

type AssignmentEvent = 'assignment_timeout_received' | 'assignment_use_cached';

const NOTHING_TO_END = (): void => {};

/** The same for all clusters. */
export interface EdsTools {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  readonly subscriptions: Subscriptions;
  /** How assignments of a cluster are read now. */
  readonly assignments: (cluster: string, settings: EdsDiscoverySettings) => ResourceType<AssignmentSettings>;
  /** That of the types that `assignments` makes now. */
  readonly scope: () => string;
  /** XXH64. */
  readonly hash: (text: string) => bigint;
  readonly onDeprecatedFields: (fields: ReadonlyMap<string, number>) => void;
}

export class EdsDiscovery implements Discovery, SubscriptionOwner<AssignmentSettings> {
  readonly #cluster: string;
  readonly #settings: EdsDiscoverySettings;
  readonly #resource: string;
  readonly #stats: EdsStats;
  readonly #tools: EdsTools;
  readonly #listener: EdsListener;
  readonly #subscription: Subscription;
  readonly #answer: () => FirstAnswer;
  #firstAnswer: FirstAnswer | undefined;
  #known: KnownAssignment | undefined;
  /** Of the one in force, where it need not be read when it comes again. */
  #fingerprint: string | undefined;
  /** Of the type that it was read by. */
  #scope: string | undefined;
  /** Of the one in force; 0 for never. */
  #staleAfterMs = 0;
  #refused: RefusedAssignment | undefined;
  #status: AssignmentRecord['status'] = 'requested';
  #endStale = NOTHING_TO_END;
  #isStopped = false;

  constructor(
    cluster: string,
    settings: EdsDiscoverySettings,
    stats: EdsStats,
    tools: EdsTools,
    listener: EdsListener,
  ) {
    const { clock, log, subscriptions, assignments, hash } = tools;
    this.#cluster = cluster;
    this.#settings = settings;
    this.#resource = resourceOf(cluster, settings);
    this.#stats = stats;
    this.#tools = tools;
    this.#listener = listener;
    const { source } = settings;
    const counted = new SubscriptionStats(stats, clock, hash);
    const what = `endpoints of cluster ${cluster}`;
    this.#answer = () => new FirstAnswer(what, source.initialFetchTimeoutMs, { clock, log, stats: counted });
    this.#subscription = subscriptions.subscribe({
      source,
      names: new Set([this.#resource]),
      type: () => assignments(cluster, settings),
      stats: counted,
      owner: this,
    });
  }

  /** In force, for a successor. */
  get known(): KnownAssignment | undefined {
    return this.#known;
  }

  get record(): AssignmentRecord {
    return { status: this.#status, known: this.#known, refused: this.#refused };
  }

  start(): void {
    const answer = this.#answer();
    this.#firstAnswer = answer;
    this.#tools.faults.run(`the start of cluster ${this.#cluster}`, async () => {
      await answer.promise;
      if (this.#isStopped) return;
      // There are thousands of clusters, and nobody asks for it any more.
      this.#firstAnswer = undefined;
      if (this.#known === undefined) this.#takeFormer();
      this.#listener.onReady();
    });
    this.#subscription.start();
  }

  stop(): void {
    this.#isStopped = true;
    this.#subscription.close();
    this.#firstAnswer?.close();
    this.#endStale();
  }

  onFailed(): void {
    this.#firstAnswer?.came();
  }

  onResponse(response: DiscoveredResponse<AssignmentSettings>): readonly string[] {
    if (this.#isStopped) return [];
    const refusals = this.#take(response);
    this.#firstAnswer?.came();
    return refusals;
  }

  onRepeated(version: string): boolean {
    if (this.#isStopped) return true;
    if (this.#known === undefined || this.#fingerprint === undefined) return false;
    // Another bootstrap may read it otherwise.
    if (this.#tools.scope() !== this.#scope) return false;
    this.#repeated(this.#known, version);
    return true;
  }

  #take(response: DiscoveredResponse<AssignmentSettings>): readonly string[] {
    const { version, extent } = response;
    const errors: string[] = [];
    for (const offered of response.offered()) {
      if (offered.name === this.#resource) return this.#takeOffered(offered, version);
      const resource = offered.read();
      // It may have been this one that could not be opened.
      if (!resource.isGood) errors.push(...resource.errors);
    }
    if (errors.length > 0) return errors;
    if (extent === 'changes' && !response.removed.includes(this.#resource)) return [];
    this.#status = 'absent';
    this.#refused = undefined;
    this.#stats.count('update_empty');
    this.#tools.log.warning(
      `cluster ${this.#cluster} keeps its members: there is no ClusterLoadAssignment with cluster_name ${this.#resource}`,
    );
    return [];
  }

  #takeOffered(offered: OfferedResource<AssignmentSettings>, version: string): readonly string[] {
    const fingerprint = offered.fingerprint();
    if (this.#known !== undefined && fingerprint !== undefined && this.#fingerprint === fingerprint) {
      this.#repeated(this.#known, version);
      return [];
    }
    this.#fingerprint = undefined;
    const resource = offered.read();
    const scope = this.#tools.scope();
    const refusals = this.#takeResource(resource, version);
    if (refusals.length > 0 || !resource.isGood || !resource.standsAlone) return refusals;
    this.#fingerprint = fingerprint;
    this.#scope = scope;
    return refusals;
  }

  #repeated({ message }: KnownAssignment, version: string): void {
    this.#stats.count('update_no_rebuild');
    this.#inForce(message, version);
  }

  #takeResource(resource: DiscoveredResource<AssignmentSettings>, version: string): readonly string[] {
    const { log, onDeprecatedFields } = this.#tools;
    logWarnings(`endpoints of cluster ${this.#cluster}`, resource, log);
    const { message } = resource;
    if (!resource.isGood) return this.#refuse(resource.errors, message, version);
    onDeprecatedFields(resource.deprecatedFields);
    try {
      this.#put(resource.resource, message, version);
      return [];
    } catch (error) {
      return this.#refuse([errorMessage(error)], message, version);
    }
  }

  #refuse(errors: readonly string[], message: Uint8Array, version: string): readonly string[] {
    const updatedMs = this.#tools.clock.wallMs();
    this.#status = 'refused';
    this.#refused = { version, updatedMs, message, error: errors.join('; ') };
    return errors.map((error) => `endpoints of cluster ${this.#cluster}: ${error}`);
  }

  /** @throws as EdsListener.onAssignment. */
  #put(assignment: AssignmentSettings, message: Uint8Array, version: string): void {
    if (!this.#listener.onAssignment(assignment)) this.#stats.count('update_no_rebuild');
    this.#staleAfterMs = assignment.staleAfterMs;
    this.#inForce(message, version);
  }

  /** It counts as new, though it may be the same again. */
  #inForce(message: Uint8Array, version: string): void {
    this.#refused = undefined;
    this.#status = 'accepted';
    const updatedMs = this.#tools.clock.wallMs();
    this.#known = { resource: this.#resource, version, updatedMs, message, source: this.#settings.source };
    this.#endStale();
    this.#endStale = NOTHING_TO_END;
    if (this.#staleAfterMs === 0) return;
    this.#stats.count('assignment_timeout_received');
    this.#endStale = this.#tools.clock.after(this.#staleAfterMs, () => this.#becameStale());
  }

  #becameStale(): void {
    this.#stats.count('assignment_stale');
    this.#tools.log.warning(`cluster ${this.#cluster} has no members any more: its assignment is stale`);
    this.#listener.onStale();
    this.#known = undefined;
  }

  #takeFormer(): void {
    const former = this.#listener.former();
    if (former === undefined || former.resource !== this.#resource) return;
    const { source } = this.#settings;
    if (JSON.stringify(former.source.origin) !== JSON.stringify(source.origin)) return;
    try {
      // The former may have read it otherwise: for other subsets.
      const type = this.#tools.assignments(this.#cluster, this.#settings);
      const assignment = readStoredResource(type, former.message);
      if (assignment === undefined) return;
      this.#stats.count('assignment_use_cached');
      this.#put(assignment, former.message, former.version);
    } catch (error) {
      this.#tools.log.error(`cluster ${this.#cluster} begins without members: ${errorMessage(error)}`);
    }
  }
}

/** What discovery calls the cluster. */
export function resourceOf(cluster: string, { serviceName }: EdsDiscoverySettings): string {
  return serviceName || cluster;
}
