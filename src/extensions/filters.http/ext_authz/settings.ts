// What main tells the workers of an ext_authz filter.

import type { Fraction, MetadataMatch, RetrySettings, RuntimeSetting, StringMatch } from '../../../snapshot/index.ts';
import type { GrpcTarget } from '../grpc/target.ts';

/** Names behind `http.<stat_prefix>.`. */
export interface ExtAuthzStatNames {
  readonly ok: string;
  readonly denied: string;
  readonly error: string;
  /** Requests that were not asked about. */
  readonly disabled: string;
  /** Failures that let a request go on. */
  readonly failureModeAllowed: string;
  /** Answers that wanted what cannot stand in a header. */
  readonly invalid: string;
}

export interface BodySettings {
  readonly maxBytes: number;
  /** The service gets what fits of a longer body. */
  readonly allowsPart: boolean;
  /** For a gRPC service: as bytes, not as text. */
  readonly isRaw: boolean;
}

/** What a service is told of a peer, by name. */
export type Labels = Readonly<Record<string, string>>;

/** Null: nothing was said. */
export type NameMatches = readonly StringMatch[] | null;

export interface HttpServiceSettings {
  readonly kind: 'http';
  readonly cluster: string;
  readonly timeoutMs: number;
  /** Null for none. */
  readonly retry: RetrySettings | null;
  readonly pathPrefix: string;
  /** In place of what the request has. Names are in lower case. */
  readonly add: readonly (readonly [name: string, value: string])[];
  readonly toUpstream: NameMatches;
  readonly appendedToUpstream: NameMatches;
  readonly toClient: NameMatches;
  readonly toClientOnSuccess: NameMatches;
  readonly toMetadata: NameMatches;
}

export interface GrpcServiceSettings extends GrpcTarget {
  readonly kind: 'grpc';
  readonly generation: 'v2' | 'v3';
  readonly includesCertificate: boolean;
  readonly includesTlsSession: boolean;
  /** Of this proxy. */
  readonly labels: Labels;
  /** Headers one by one, as bytes. */
  readonly hasRawHeaders: boolean;
  readonly metadataNamespaces: readonly string[];
  readonly routeMetadataNamespaces: readonly string[];
  readonly keepsMetadata: boolean;
}

export interface ExtAuthzSettings {
  readonly stats: ExtAuthzStatNames;
  readonly service: HttpServiceSettings | GrpcServiceSettings;
  readonly failsOpen: boolean;
  readonly tellsFailOpen: boolean;
  /** Null: the service does not get it. */
  readonly body: BodySettings | null;
  readonly clearsRoute: boolean;
  readonly statusOnError: number;
  /** Null for all requests. */
  readonly enabled: RuntimeSetting<Fraction> | null;
  /** Of what filters before have said; null for all requests. */
  readonly enabledMetadata: MetadataMatch | null;
  readonly deniesDisabled: RuntimeSetting<boolean>;
  readonly allowedHeaders: NameMatches;
  readonly disallowedHeaders: NameMatches;
  readonly validates: boolean;
  readonly countsByCluster: boolean;
}

/** What one level of a route says. */
export interface CheckSettings {
  readonly context: Readonly<Record<string, string>>;
  readonly ignoresBody: boolean;
  /** Null: as the filter says. */
  readonly body: BodySettings | null;
}
