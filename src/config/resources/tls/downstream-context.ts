// DownstreamTlsContext messages → how a listener's connections are secured.

import { hkdfSync } from 'node:crypto';
import type { DownstreamTlsSettings, TlsCertificateSettings } from '../../../snapshot/index.ts';
import { DownstreamTlsContext_OcspStaplePolicy as StaplePolicy } from '../../proto/generated/enums.ts';
import type { Conversion } from '../conversion.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { DataSource, DownstreamTlsContext } from '../messages.ts';
import { durationMsOr, valueOr } from '../units.ts';
import { convertCommonContext } from './common-context.ts';
import { FileTrail } from './file-trail.ts';
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
  given: Conversion,
): DownstreamTlsSettings {
  const { faults, trail = new FileTrail() } = given;
  const conversion = { ...given, trail };
  const commonAt = `${at}.common_tls_context`;
  const common = convertCommonContext(message.common_tls_context, commonAt, conversion);
  const context = message.common_tls_context;
  const isNamed =
    (context?.tls_certificates.length ?? 0) + (context?.tls_certificate_sds_secret_configs.length ?? 0) > 0;
  if (!isNamed) faults.error(commonAt, 'a server needs a certificate: tls_certificates is empty');
  const requiresClientCertificate = valueOr(message.require_client_certificate, false);
  const stapling = STAPLING[message.ocsp_staple_policy] ?? 'lenient';
  checkStaples(common.certificates, stapling, at, faults);
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

function checkStaples(
  certificates: readonly TlsCertificateSettings[],
  stapling: DownstreamTlsSettings['stapling'],
  at: string,
  faults: FaultSink,
): void {
  if (stapling === 'must' && certificates.some(({ staple }) => staple === null)) {
    faults.error(`${at}.ocsp_staple_policy`, 'MUST_STAPLE needs an ocsp_staple for each certificate');
  }
}

function convertTicketKeys(
  message: DownstreamTlsContext,
  at: string,
  conversion: Conversion,
): readonly Uint8Array[] | 'random' {
  const { session_ticket_keys: own, session_ticket_keys_sds_secret_config: config } = message;
  const found =
    config === null
      ? own && { message: own, at: `${at}.session_ticket_keys`, conversion }
      : findSecret(config, 'session_ticket_keys', `${at}.session_ticket_keys_sds_secret_config`, conversion);
  if (found === null || found === undefined) return 'random';
  const keys = found.message.keys.map((key, index) =>
    readTicketKey(key, `${found.at}.keys[${index}]`, found.conversion),
  );
  return keys.filter((key) => key !== undefined);
}

/**
 * Node's tickets have room for shorter keys than those in files: the parts are derived from all of it, so that proxies with the
 * same file take each other's tickets.
 */
function readTicketKey(key: DataSource, at: string, conversion: Conversion): Uint8Array | undefined {
  const source = convertSource(key, at, conversion);
  const bytes = readSource(source, at, conversion.faults);
  if (bytes === null) return undefined;
  if (bytes.length === FILE_KEY_BYTES) {
    return new Uint8Array(hkdfSync('sha256', bytes, '', 'session ticket key', TICKET_KEY_BYTES));
  }
  conversion.faults.error(
    at,
    `${sourceName(source)} has ${bytes.length} bytes; a session ticket key has ${FILE_KEY_BYTES}`,
  );
  return undefined;
}
