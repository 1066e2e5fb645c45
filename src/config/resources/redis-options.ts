// What connections to the hosts of a cluster of Redis servers say first: RedisProtocolOptions, among
// typed_extension_protocol_options of the cluster. Traffic and checks alike.

import type { ServerCredentials } from '../../snapshot/index.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { entryPath, fieldPath } from '../source/field-path.ts';
import type { Conversion } from './conversion.ts';
import { readDataSource } from './data-source.ts';
import { openExtension } from './extension.ts';
import type { Cluster, DataSource } from './messages.ts';

const REDIS_OPTIONS = 'proxy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions';

/** @returns undefined where servers ask for none. */
export function convertServerCredentials(
  cluster: Cluster,
  at: string,
  conversion: Conversion,
): ServerCredentials | undefined {
  const byName = cluster.typed_extension_protocol_options;
  for (const name in byName) {
    const opened = openExtension(byName[name]!);
    if (opened?.typeName !== REDIS_OPTIONS) continue;
    const here = entryPath(fieldPath(at, 'typed_extension_protocol_options'), name);
    const { auth_password, auth_username } = opened.message as MessageTypes[typeof REDIS_OPTIONS];
    const password = credentialOf(auth_password, `${here}.auth_password`, conversion);
    const username = credentialOf(auth_username, `${here}.auth_username`, conversion);
    if (auth_username !== null && auth_password === null) {
      conversion.faults.error(`${here}.auth_username`, 'needs auth_password');
    }
    return auth_password === null ? undefined : { username, password };
  }
  return undefined;
}

/** A name or a password, without the line end that files have. Empty ones that are configured are faults. */
export function credentialOf(source: DataSource | null, at: string, conversion: Conversion): string {
  if (source === null) return '';
  const text = Buffer.from(readDataSource(source, at, conversion))
    .toString()
    .replace(/\r?\n$/, '');
  // Who configures one means that there is one.
  if (text === '') conversion.faults.error(at, 'is empty');
  return text;
}
