// The configuration in use, as the admin interface reads it: messages in their binary form, of the schema's types.

import type { Address } from '../../base/address.ts';
import type { JsonObject } from '../../base/json.ts';
import type { LocalityView } from './locality.ts';

/** One cluster or listener in one of its states; several may have one name. */
export interface ResourceView {
  readonly name: string;
  readonly message: Uint8Array;
  readonly addedViaApi: boolean;
  /** Empty for those of the bootstrap. */
  readonly version: string;
  /** When it came, in milliseconds since the Unix epoch. */
  readonly updatedMs: number;
  readonly state: 'active' | 'warming' | 'draining' | 'failed';
  /** Why it has failed; empty otherwise. */
  readonly error: string;
}

export interface ResourcesView {
  /** Of the last accepted discovery update; empty without one. */
  readonly version: string;
  readonly resources: readonly ResourceView[];
}

export interface EndpointView {
  readonly address: Address;
  readonly hostname: string;
  /** With all that is known of it now. */
  readonly health: 'HEALTHY' | 'DEGRADED' | 'UNHEALTHY';
  readonly weight: number;
  readonly locality: LocalityView;
  /** 0 where localities are not weighed. */
  readonly localityWeight: number;
  readonly priority: number;
  /** By namespace. */
  readonly metadata: Readonly<Record<string, JsonObject>>;
  /** Where and how it is checked when that differs from its cluster's ways: port 0 and an empty name for nothing else. */
  readonly check: { readonly port: number; readonly hostname: string };
}

/** What discovery has brought of the members of a cluster. */
export interface AssignmentView {
  readonly status: 'requested' | 'absent' | 'accepted' | 'refused';
  /** In force; undefined before the first. */
  readonly known: { readonly version: string; readonly updatedMs: number; readonly message: Uint8Array } | undefined;
  /** Of the last response, if it was. */
  readonly refused:
    | { readonly version: string; readonly updatedMs: number; readonly message: Uint8Array; readonly error: string }
    | undefined;
}

/** The members of an active cluster. */
export interface EndpointsView {
  /** What discovery calls the cluster. */
  readonly name: string;
  readonly addedViaApi: boolean;
  /** Percent. */
  readonly overprovisioningFactor: number;
  /** The cluster's message. */
  readonly message: Uint8Array;
  /** Undefined where members come in another way. */
  readonly assignment: AssignmentView | undefined;
  /** By priority; read once, one by one. */
  endpoints(): Iterable<EndpointView>;
}

/** What comes by discovery under one name. */
export interface RoutesView {
  readonly name: string;
  /** Undefined before the first. */
  readonly accepted: ResourceView | undefined;
  /** The last one, where none has been accepted since. */
  readonly refused: ResourceView | undefined;
}

/** The scopes of one name that discovery has brought. */
export interface ScopesView {
  readonly name: string;
  readonly version: string;
  readonly updatedMs: number;
  /** Of those in force. */
  readonly messages: readonly Uint8Array[];
  /** The first of the last response that was refused, where none has been taken over as a whole since. */
  readonly refused: Pick<ResourceView, 'version' | 'message' | 'updatedMs' | 'error'> | undefined;
}

export interface SecretView {
  readonly name: string;
  /** When it was asked for first, milliseconds since the Unix epoch. */
  readonly sinceMs: number;
  /** Undefined before the first. */
  readonly accepted: ResourceView | undefined;
  /** The last one, where none has been accepted since. */
  readonly refused: ResourceView | undefined;
}

export interface ConfigView {
  readonly bootstrap: {
    readonly message: Uint8Array;
    readonly secrets: readonly Uint8Array[];
    readonly updatedMs: number;
  };
  clusters(): ResourcesView;
  listeners(): ResourcesView;
  /** Those that come by discovery, or could not. */
  routes(): readonly RoutesView[];
  /** The same of filters. */
  filters(): readonly RoutesView[];
  /** The same of scopes. */
  scopes(): readonly ScopesView[];
  /** Those that come by discovery, or are to come. */
  secrets(): readonly SecretView[];
  endpoints(): Iterable<EndpointsView>;
}
