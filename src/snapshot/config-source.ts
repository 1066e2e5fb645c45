// Where resources come from that may change while the proxy runs. Plain data: clusters and listeners carry it.

import type { DnsResolverSettings } from './dns-resolver.ts';
import type { UpstreamTlsSettings } from './tls.ts';

export interface ConfigSourceSettings {
  readonly origin: FileSourceSettings | AggregatedSourceSettings | GrpcSourceSettings | RestSourceSettings;
  /** Whose type URLs resources are asked for by; those of both are read. */
  readonly resourceGeneration: 'v2' | 'v3';
  /** The start of the server waits no longer for the first answer; 0 for any time. */
  readonly initialFetchTimeoutMs: number;
}

export interface FileSourceSettings {
  readonly kind: 'file';
  /** Of a DiscoveryResponse. */
  readonly path: string;
  /** It is read again when something is moved here; the file itself when undefined. */
  readonly watchedFolder: string | undefined;
}

/** The stream that brings resources of all types, whose server the bootstrap names. */
export interface AggregatedSourceSettings {
  readonly kind: 'ads';
}

/** A stream to a management server. */
export interface GrpcSourceSettings {
  readonly kind: 'grpc';
  /** What a response tells: all there is, or what has changed. */
  readonly form: 'state' | 'changes';
  /** The next is tried where one does not answer. At least one. */
  readonly servers: readonly ManagementServerSettings[];
  readonly transportGeneration: 'v2' | 'v3';
  readonly nodeOnFirstMessageOnly: boolean;
  /** Of requests; undefined for any number. */
  readonly rateLimit: RequestRateSettings | undefined;
}

/** A management server that is asked by HTTP, again and again. */
export interface RestSourceSettings {
  readonly kind: 'rest';
  readonly cluster: string;
  readonly transportGeneration: 'v2' | 'v3';
  /** From an answer to the next question, which comes up to as much later again. At least 1. */
  readonly refreshDelayMs: number;
  /** From a question to the end of its answer. At least 1. */
  readonly requestTimeoutMs: number;
}

export interface ManagementServerSettings {
  /** Its name; of a server that no cluster names, where it is, as it was written. */
  readonly cluster: string;
  /** Takes the place of a cluster. */
  readonly target?: GrpcTargetSettings;
  readonly authority: string;
  readonly metadata: readonly { readonly key: string; readonly value: string }[];
  /** Of a message; 0 for what this build allows. */
  readonly maxMessageBytes: number;
}

/** A gRPC server that no cluster names. */
export interface GrpcTargetSettings {
  /** Names are looked up. At least one host. */
  readonly place:
    | { readonly kind: 'hosts'; readonly hosts: readonly { readonly host: string; readonly port: number }[] }
    | { readonly kind: 'pipe'; readonly path: string };
  readonly resolver: DnsResolverSettings;
  /** Null for plain connections. */
  readonly tls: UpstreamTlsSettings | null;
  /** How it is told from one that has gone without a word; null for not at all. */
  readonly keepalive: { readonly intervalMs: number; readonly timeoutMs: number } | null;
}

export interface RequestRateSettings {
  /** At once. */
  readonly burst: number;
  readonly perSecond: number;
}
