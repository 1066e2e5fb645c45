// What a connection manager makes of the form of requests before routes, filters and upstreams see them.

export interface NormalizationSettings {
  /** Null leaves it to the runtime. */
  readonly normalizesPath: boolean | null;
  readonly mergesSlashes: boolean;
  /** What becomes of paths with escaped slashes; null leaves it to the runtime. */
  readonly escapedSlashes: EscapedSlashesAction | null;
  /** Ports of hosts go: none, that of the listener, or any. */
  readonly strippedPorts: 'none' | 'own' | 'all';
  readonly stripsHostDot: boolean;
  /** Requests of HTTP/1.0 are served, not told to come by HTTP/1.1. */
  readonly acceptsHttp10: boolean;
  /** Of requests of HTTP/1.0 that name no host; empty where they are refused. */
  readonly defaultHost: string;
  /** What becomes of headers and trailers with underscores in their names. */
  readonly underscores: UnderscoresAction;
}

export type EscapedSlashesAction = 'keep' | 'reject' | 'redirect' | 'forward';
export type UnderscoresAction = 'allow' | 'reject' | 'drop';
