// The fields of a connection manager that say in which form requests go on → NormalizationSettings.

import type { EscapedSlashesAction, NormalizationSettings, UnderscoresAction } from '../../snapshot/index.ts';
import {
  HttpConnectionManager_PathWithEscapedSlashesAction as EscapedSlashes,
  HttpProtocolOptions_HeadersWithUnderscoresAction as Underscores,
} from '../proto/generated/enums.ts';
import { quote } from '../source/node.ts';
import type { FaultSink } from './fault-sink.ts';
import type { HttpConnectionManager } from './messages.ts';

/** The default is the runtime's affair. */
const ESCAPED_SLASHES: Readonly<Record<number, EscapedSlashesAction>> = {
  [EscapedSlashes.KEEP_UNCHANGED]: 'keep',
  [EscapedSlashes.REJECT_REQUEST]: 'reject',
  [EscapedSlashes.UNESCAPE_AND_REDIRECT]: 'redirect',
  [EscapedSlashes.UNESCAPE_AND_FORWARD]: 'forward',
};
const UNDERSCORES: Readonly<Record<number, UnderscoresAction>> = {
  [Underscores.REJECT_REQUEST]: 'reject',
  [Underscores.DROP_HEADER]: 'drop',
};

/** As the codec takes it from clients: a name or an address, perhaps with a port. Empty is none. */
const AUTHORITY = /^(([\w.~!$&'()*+,;=-]{1,255}|\[[\da-f:.]{2,45}\])(:\d{1,5})?)?$/i;

function isAuthority(text: string): boolean {
  return AUTHORITY.test(text);
}

/** @param at path of the connection manager. */
export function convertNormalization(
  message: HttpConnectionManager,
  at: string,
  faults: FaultSink,
): NormalizationSettings {
  const { strip_any_host_port, strip_matching_host_port } = message;
  if (strip_any_host_port && strip_matching_host_port) {
    faults.error(`${at}.strip_any_host_port`, 'only one of this and strip_matching_host_port can be set');
  }
  const action = message.common_http_protocol_options?.headers_with_underscores_action ?? Underscores.ALLOW;
  const acceptsHttp10 = message.http_protocol_options?.accept_http_10 ?? false;
  const defaultHost = message.http_protocol_options?.default_host_for_http_10 ?? '';
  const defaultHostAt = `${at}.http_protocol_options.default_host_for_http_10`;
  if (!isAuthority(defaultHost)) faults.error(defaultHostAt, `${quote(defaultHost)} is no host`);
  if (defaultHost !== '' && !acceptsHttp10) faults.warning(defaultHostAt, 'has no effect without accept_http_10');
  return {
    acceptsHttp10,
    defaultHost,
    normalizesPath: message.normalize_path?.value ?? null,
    mergesSlashes: message.merge_slashes,
    escapedSlashes: ESCAPED_SLASHES[message.path_with_escaped_slashes_action] ?? null,
    strippedPorts: strip_any_host_port ? 'all' : strip_matching_host_port ? 'own' : 'none',
    stripsHostDot: message.strip_trailing_host_dot,
    underscores: UNDERSCORES[action] ?? 'allow',
  };
}
