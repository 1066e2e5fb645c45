// ConfigSource message → where resources come from that may change while the proxy runs. Those that no file has are refused by the
// support table.

import path from 'node:path';
import type { ConfigSourceSettings } from '../../snapshot/index.ts';
import type { ConfigSource } from './messages.ts';
import { durationMsOr } from './units.ts';

const DEFAULT_FETCH_TIMEOUT_MS = 15_000;

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
