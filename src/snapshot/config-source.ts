// Where resources come from that may change while the proxy runs. Main alone reads it, of whatever asks for some.

export interface ConfigSourceSettings {
  readonly origin: FileSourceSettings;
  /** Who starts waits no longer for the first answer; 0 for any time. */
  readonly initialFetchTimeoutMs: number;
}

export interface FileSourceSettings {
  readonly kind: 'file';
  /** Of a DiscoveryResponse. */
  readonly path: string;
  /** It is read again when something is moved here; the file itself when undefined. */
  readonly watchedFolder: string | undefined;
}
