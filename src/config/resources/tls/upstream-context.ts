// UpstreamTlsContext messages → how connections to the hosts of a cluster are secured.

import { isIP } from 'node:net';
import type { UpstreamTlsSettings } from '../../../snapshot/index.ts';
import { quote } from '../../source/node.ts';
import type { Conversion } from '../conversion.ts';
import type { UpstreamTlsContext } from '../messages.ts';
import { valueOr } from '../units.ts';
import { convertCommonContext } from './common-context.ts';

/** @param at path of the message. */
export function convertUpstreamContext(
  message: UpstreamTlsContext,
  at: string,
  conversion: Conversion,
): UpstreamTlsSettings {
  const { faults } = conversion;
  const commonAt = `${at}.common_tls_context`;
  const common = convertCommonContext(message.common_tls_context, commonAt, conversion, 'TLSv1.2');
  if (common.certificates.length > 1) {
    faults.error(`${commonAt}.tls_certificates`, 'a client presents one certificate; there are more');
  }
  const isNamed = isIP(message.sni) === 0;
  if (!isNamed) faults.warning(`${at}.sni`, `${quote(message.sni)} is an address, which no server is asked for`);
  const { trustedCa, sources } = common.validation ?? { trustedCa: null, sources: { trustedCa: null } };
  const isComing = common.validation === null && common.secrets.some(({ kind }) => kind === 'validation_context');
  // What cannot be read has been told of.
  const isTrustWanted = trustedCa !== null || sources.trustedCa !== null || isComing;
  if (message.auto_sni_san_validation && !isTrustWanted) {
    faults.error(`${at}.auto_sni_san_validation`, 'says nothing unless trusted_ca says whom to believe');
  }
  return {
    ...common,
    serverName: message.sni,
    usesHostname: message.auto_host_sni,
    verifiesServerName: message.auto_sni_san_validation,
    maxSessions: valueOr(message.max_session_keys, 1),
    allowsRenegotiation: message.allow_renegotiation,
  };
}
