// ConfigSource message → where resources come from that may change while the proxy runs. Those that no file has are refused by the
// support table.

import path from 'node:path';
import type { ConfigSource } from './messages.ts';
import { durationMsOr } from './units.ts';

const DEFAULT_FETCH_TIMEOUT_MS = 15_000;

export interface ConfigSourceSettings {
  readonly origin: FileSourceSettings;
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

/** @returns undefined for a source that this build does not have. */
export function convertConfigSource(source: ConfigSource): ConfigSourceSettings | undefined {
  const { path: file, path_config_source: settings, initial_fetch_timeout: timeout } = source;
  if (settings === null && file === '') return undefined;
  const folder = settings?.watched_directory?.path ?? '';
  return {
    origin: {
      kind: 'file',
      path: path.resolve(settings?.path ?? file),
      watchedFolder: folder === '' ? undefined : path.resolve(folder),
    },
    initialFetchTimeoutMs: durationMsOr(timeout, DEFAULT_FETCH_TIMEOUT_MS),
  };
}
