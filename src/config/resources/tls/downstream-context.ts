// DownstreamTlsContext messages → how a listener's connections are secured.

import type { DownstreamTlsSettings, TlsCertificateSettings } from '../../../snapshot/index.ts';
import { DownstreamTlsContext_OcspStaplePolicy as StaplePolicy } from '../../proto/generated/enums.ts';
import type { Conversion } from '../conversion.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { DownstreamTlsContext } from '../messages.ts';
import { durationMsOr, valueOr } from '../units.ts';
import { convertCommonContext, missingSecrets } from './common-context.ts';
import { findSecret } from './secrets.ts';
import { SourceTrail } from './source-trail.ts';
import { convertTicketKeys } from './ticket-keys.ts';

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
  const { faults, trail = new SourceTrail() } = given;
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
  const ticketKeys = message.disable_stateless_session_resumption ? null : ticketKeysOf(message, at, conversion);
  return {
    ...common,
    missingSecrets: missingSecrets(trail.missing, common.certificates),
    requiresClientCertificate,
    requiresServerName: valueOr(message.require_sni, false),
    prefersClientCiphers: message.prefer_client_ciphers,
    ticketKeys,
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

function ticketKeysOf(
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
  return convertTicketKeys(found.message, found.at, found.conversion);
}
