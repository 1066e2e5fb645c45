// DownstreamTlsContext messages → how a listener's connections are secured.

import { hkdfSync } from 'node:crypto';
import type { DownstreamTlsSettings } from '../../../snapshot/index.ts';
import { DownstreamTlsContext_OcspStaplePolicy as StaplePolicy } from '../../proto/generated/enums.ts';
import type { Conversion } from '../conversion.ts';
import type { DownstreamTlsContext, TlsSessionTicketKeys } from '../messages.ts';
import { durationMsOr, valueOr } from '../units.ts';
import { convertCommonContext } from './common-context.ts';
import { findSecret } from './secrets.ts';
import { convertSource, readSource, sourceName } from './source.ts';

/** Name, HMAC key and cipher key, as Node takes them. */
const TICKET_KEY_BYTES = 48;
/** Of a key in a file, as other proxies write it. */
const FILE_KEY_BYTES = 80;
/** That of OpenSSL's ancestors and of most servers. */
const DEFAULT_SESSION_MS = 2 * 60 * 60 * 1000;
const STAPLING: Readonly<Record<number, DownstreamTlsSettings['stapling']>> = {
  [StaplePolicy.LENIENT_STAPLING]: 'lenient',
  [StaplePolicy.STRICT_STAPLING]: 'strict',
  [StaplePolicy.MUST_STAPLE]: 'must',
};

/** @param at path of the message. */
export function convertDownstreamContext(
  message: DownstreamTlsContext,
  at: string,
  conversion: Conversion,
): DownstreamTlsSettings {
  const { faults } = conversion;
  const commonAt = `${at}.common_tls_context`;
  const common = convertCommonContext(message.common_tls_context, commonAt, conversion);
  const given = message.common_tls_context;
  const isNamed = (given?.tls_certificates.length ?? 0) + (given?.tls_certificate_sds_secret_configs.length ?? 0) > 0;
  if (!isNamed) faults.error(commonAt, 'a server needs a certificate: tls_certificates is empty');
  const requiresClientCertificate = valueOr(message.require_client_certificate, false);
  const stapling = STAPLING[message.ocsp_staple_policy] ?? 'lenient';
  if (stapling === 'must' && common.certificates.some(({ ocspResponse }) => ocspResponse === null)) {
    faults.error(`${at}.ocsp_staple_policy`, 'MUST_STAPLE needs an ocsp_staple for each certificate');
  }
  return {
    ...common,
    requiresClientCertificate,
    requiresServerName: valueOr(message.require_sni, false),
    prefersClientCiphers: message.prefer_client_ciphers,
    ticketKeys: message.disable_stateless_session_resumption ? null : convertTicketKeys(message, at, conversion),
    sessionTimeoutMs: durationMsOr(message.session_timeout, DEFAULT_SESSION_MS),
    stapling,
  };
}

function convertTicketKeys(message: DownstreamTlsContext, at: string, conversion: Conversion): Uint8Array | 'random' {
  const { session_ticket_keys: own, session_ticket_keys_sds_secret_config: config } = message;
  const found =
    config === null
      ? own && { message: own, at: `${at}.session_ticket_keys` }
      : findSecret(config, 'session_ticket_keys', `${at}.session_ticket_keys_sds_secret_config`, conversion);
  return (found && readTicketKey(found.message, found.at, conversion)) ?? 'random';
}

/**
 * The first key. Node's tickets have room for one, and shorter than those in files: its parts are derived from all of it, so
 * that proxies with the same file take each other's tickets.
 */
function readTicketKey({ keys }: TlsSessionTicketKeys, at: string, conversion: Conversion): Uint8Array | undefined {
  const { faults } = conversion;
  if (keys.length > 1)
    faults.warning(`${at}.keys[1]`, 'tickets of older keys are not taken; their clients shake hands in full');
  const keyAt = `${at}.keys[0]`;
  const source = convertSource(keys[0] ?? null, keyAt, conversion);
  const bytes = readSource(source, keyAt, faults);
  if (bytes === null) return undefined;
  if (bytes.length === FILE_KEY_BYTES) {
    return new Uint8Array(hkdfSync('sha256', bytes, '', 'session ticket key', TICKET_KEY_BYTES));
  }
  faults.error(keyAt, `${sourceName(source)} has ${bytes.length} bytes; a session ticket key has ${FILE_KEY_BYTES}`);
  return undefined;
}
