// One resource that is asked for by its name: held against what comes, kept as it was accepted last and as it could not be accepted
// since. What may not be leaves the one before it. Main thread.

import { errorMessage } from '../../base/errors.ts';
import type { DiscoveredResponse } from '../../config/index.ts';
import type { ResourceRecord } from '../resource-record.ts';
import { logWarnings } from '../subscription/resource-warnings.ts';
import { type DiscoveryDependencies, Feed, type FeedRequest } from './feed.ts';

/** One that has come. */
export interface ReceivedResource {
  /** In its binary form. */
  readonly message: Uint8Array;
  readonly version: string;
  /** When it came, in milliseconds since the Unix epoch. */
  readonly updatedMs: number;
}

export interface DumpedResource {
  readonly name: string;
  /** Undefined before the first. */
  readonly accepted: ResourceRecord | undefined;
  /** The last one, where none has been accepted since. */
  readonly refused: ResourceRecord | undefined;
}

export interface NamedResourceRequest<Read>
  extends Pick<FeedRequest<Read>, 'source' | 'statPrefix' | 'type' | 'followsWrites' | 'isAnswer' | 'onAnswered'> {
  readonly name: string;
  /** As messages name one of its kind: `route configuration`. */
  readonly kind: string;
  /**
   * It is the one in force when this is called. @param former the one before it.
   * @returns a promise where more comes of it than whoever waits for it has to wait for.
   * @throws when it cannot be had: the one before it is in force then, as if nothing had happened.
   */
  accept(read: Read, resource: ReceivedResource, former: ReceivedResource | undefined): void | Promise<void>;
  onRefused?(): void;
  /** The source has told of others, or of none. @param isGone it is sure that there is none of this name. @returns complaints. */
  onAbsent(isGone: boolean, response: DiscoveredResponse<Read>): readonly string[];
}

export class NamedResource<Read> {
  readonly name: string;
  readonly feed: Feed<Read>;
  readonly #request: NamedResourceRequest<Read>;
  readonly #deps: DiscoveryDependencies;
  #accepted: ReceivedResource | undefined;
  #failure: (ReceivedResource & { readonly error: string }) | undefined;

  constructor(request: NamedResourceRequest<Read>, deps: DiscoveryDependencies) {
    const { name, kind } = request;
    this.name = name;
    this.#request = request;
    this.#deps = deps;
    const take = (response: DiscoveredResponse<Read>) => this.#take(response);
    this.feed = new Feed({ ...request, what: `${kind} ${name}`, names: new Set([name]), take }, deps);
  }

  /** The one in force. */
  get accepted(): ReceivedResource | undefined {
    return this.#accepted;
  }

  /** The last one that may not be, where none has been accepted since. */
  get failure(): ReceivedResource | undefined {
    return this.#failure;
  }

  dump(): DumpedResource {
    const { name } = this;
    const own = { name, addedViaApi: true };
    const accepted = this.#accepted && { ...own, ...this.#accepted, state: 'active' as const, error: '' };
    const refused = this.#failure && { ...own, ...this.#failure, state: 'failed' as const };
    return { name, accepted, refused };
  }

  #take(response: DiscoveredResponse<Read>): readonly string[] | Promise<readonly string[]> {
    const { log, onDeprecatedFields } = this.#deps;
    const resources = [...response.offered()].map((offered) => offered.read());
    for (const resource of resources) logWarnings(`${this.#request.kind} ${resource.name}`, resource, log);
    const own = resources.filter(({ name }) => name === this.name);
    // It may have been this one that could not be opened.
    const strange = resources.flatMap((resource) => (resource.isGood || resource.name !== '' ? [] : resource.errors));
    const [resource] = own;
    if (resource === undefined) {
      const isUnlisted = response.extent === 'all' && strange.length === 0;
      const isGone = isUnlisted || response.removed.includes(this.name);
      return [...strange, ...this.#request.onAbsent(isGone, response)];
    }
    const { message, version = response.version } = resource;
    const received = { message, version, updatedMs: this.#deps.clock.wallMs() };
    if (own.length > 1) return this.refuse(received, [`it holds ${own.length} of this name`]);
    if (!resource.isGood) return this.refuse(received, resource.errors);
    onDeprecatedFields(resource.deprecatedFields);
    const refusals = this.accept(resource.resource, received);
    return refusals instanceof Promise ? refusals.then(() => strange) : [...refusals, ...strange];
  }

  /** @returns why it may not be. */
  accept(read: Read, received: ReceivedResource): readonly string[] | Promise<readonly string[]> {
    const former = this.#accepted;
    this.#accepted = received;
    let following: void | Promise<void>;
    try {
      following = this.#request.accept(read, received, former);
    } catch (error) {
      this.#accepted = former;
      return this.refuse(received, [errorMessage(error)]);
    }
    this.#failure = undefined;
    this.feed.answered();
    return following instanceof Promise ? following.then(() => []) : [];
  }

  /** @returns why, for whoever has sent it. */
  refuse(received: ReceivedResource, errors: readonly string[]): readonly string[] {
    this.#failure = { ...received, error: errors.join('; ') };
    this.#request.onRefused?.();
    return errors.map((error) => `${this.#request.kind} ${this.name}: ${error}`);
  }

  /** There is none of this name any more. @returns whether there was one. */
  forget(): boolean {
    const had = this.#accepted !== undefined;
    this.#accepted = undefined;
    this.#failure = undefined;
    return had;
  }
}

/** Whether both say the same, whenever they came. */
export function isSameMessage(one: ReceivedResource, other: ReceivedResource | undefined): boolean {
  return other !== undefined && Buffer.from(one.message).equals(other.message);
}
