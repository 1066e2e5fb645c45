// What comes of an answer to whoever has asked for resources, from wherever it comes. Each resource is read when it is asked for, so
// that the caller can rest between two; what is wrong with one does not keep the others from being used. Main thread.

import type { DeprecatedFields } from '../support/index.ts';

/** A response that could be read, which says nothing of its resources yet. */
export interface DiscoveredResponse<Resource> {
  readonly version: string;
  /** `all`: there are no others, of those that were asked for. `changes`: others are as they were. */
  readonly extent: 'all' | 'changes';
  /** Of those that there are no longer; for `changes` only. */
  readonly removed: readonly string[];
  /** In their order; empty for those that have none, or could not be opened. */
  readonly names: readonly string[];
  /** Of the response itself, with file and line. */
  readonly warnings: readonly string[];
  /** Those that there are, unread, in their order. Once. */
  offered(): Iterable<OfferedResource<Resource>>;
}

/** One that is read when it is asked for, if it is. */
export interface OfferedResource<Resource> {
  readonly name: string;
  /** Under which it may have been asked for, beside its name; none when absent. */
  readonly aliases?: readonly string[];
  /** As of DiscoveredResource. */
  readonly version?: string;
  /**
   * Of all that its settings are made of: two resources with the same one are read alike, where both stand alone. Undefined where
   * that cannot be said.
   */
  fingerprint(): string | undefined;
  read(): DiscoveredResource<Resource>;
}

interface AnyDiscoveredResource {
  readonly name: string;
  /** Its own, where resources have versions for themselves; that of the response where it is absent. */
  readonly version?: string;
  /** In its binary form; empty where it could not be opened. */
  readonly message: Uint8Array;
  /** With file and line. */
  readonly warnings: readonly string[];
}

export interface GoodResource<Resource> extends AnyDiscoveredResource {
  readonly isGood: true;
  readonly resource: Resource;
  readonly deprecatedFields: DeprecatedFields;
  /** It would have been read alike beside any others, and there was nothing to be said of it. */
  readonly standsAlone: boolean;
}

export interface RefusedResource extends AnyDiscoveredResource {
  readonly isGood: false;
  /** Why, with file and line; at least one. */
  readonly errors: readonly string[];
}

export type DiscoveredResource<Resource> = GoodResource<Resource> | RefusedResource;
