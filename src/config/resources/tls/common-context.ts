// CommonTlsContext messages → what TLS of both sides has in common.

import type {
  SecretReference,
  TlsCertificateSettings,
  TlsSettings,
  TlsValidationSettings,
  TlsVersion,
} from '../../../snapshot/index.ts';
import { quote } from '../../source/node.ts';
import { convertCidrRanges } from '../cidr.ts';
import type { Conversion } from '../conversion.ts';
import type { CertificateValidationContext, CommonTlsContext } from '../messages.ts';
import { convertCertificate } from './certificate.ts';
import { convertParameters } from './parameters.ts';
import { findSecret } from './secrets.ts';
import { SourceTrail } from './source-trail.ts';
import { convertValidation } from './validation.ts';

/** Of one ALPN protocol in a handshake. */
const MAX_ALPN_BYTES = 255;

/**
 * @param at path of the message. @param defaultMaxVersion where the message says nothing.
 * @returns settings without what a fault was found in.
 */
export function convertCommonContext(
  message: CommonTlsContext | null,
  at: string,
  conversion: Conversion,
  defaultMaxVersion?: TlsVersion,
): TlsSettings {
  const { faults, trail = new SourceTrail() } = conversion;
  const tracked = { ...conversion, trail };
  const certificates = message === null ? [] : convertCertificates(message, at, tracked);
  for (const [index, protocol] of (message?.alpn_protocols ?? []).entries()) {
    const length = Buffer.byteLength(protocol);
    if (length > 0 && length <= MAX_ALPN_BYTES) continue;
    faults.error(
      `${at}.alpn_protocols[${index}]`,
      `${quote(protocol)} has ${length} bytes; 1 to ${MAX_ALPN_BYTES} can be named`,
    );
  }
  const keyLog = message?.key_log ?? null;
  const logAt = `${at}.key_log`;
  return {
    files: trail.files,
    secrets: trail.secrets,
    ...convertParameters(message?.tls_params ?? null, `${at}.tls_params`, faults, defaultMaxVersion),
    alpnProtocols: message?.alpn_protocols ?? [],
    certificates,
    validation: message === null ? null : convertAnyValidation(message, at, tracked),
    missingSecrets: missingSecrets(trail.missing, certificates),
    keyLog: keyLog && {
      path: keyLog.path,
      localRanges: convertCidrRanges(keyLog.local_address_range, `${logAt}.local_address_range`, faults),
      remoteRanges: convertCidrRanges(keyLog.remote_address_range, `${logAt}.remote_address_range`, faults),
    },
  };
}

/** Of several certificates one is enough. @param missing those that have not come. @returns names of those that nothing goes without. */
export function missingSecrets(
  missing: readonly SecretReference[],
  certificates: readonly TlsCertificateSettings[],
): readonly string[] {
  const needed = missing.filter(({ kind }) => kind !== 'tls_certificate' || certificates.length === 0);
  return [...new Set(needed.map(({ name }) => name))];
}

function convertCertificates(message: CommonTlsContext, at: string, conversion: Conversion): TlsCertificateSettings[] {
  const own = message.tls_certificates.map((certificate, index) =>
    convertCertificate(certificate, `${at}.tls_certificates[${index}]`, conversion),
  );
  const configs = message.tls_certificate_sds_secret_configs;
  if (own.length > 0 && configs.length > 0) {
    conversion.faults.error(`${at}.tls_certificate_sds_secret_configs`, 'must not stand beside tls_certificates');
  }
  const named = configs.map((config, index) => {
    const found = findSecret(
      config,
      'tls_certificate',
      `${at}.tls_certificate_sds_secret_configs[${index}]`,
      conversion,
    );
    return found && convertCertificate(found.message, found.at, found.conversion);
  });
  return [...own, ...named].filter((certificate) => certificate !== undefined);
}

function convertAnyValidation(
  message: CommonTlsContext,
  at: string,
  conversion: Conversion,
): TlsValidationSettings | null {
  switch (message.validation_context_type) {
    case 'validation_context':
      return convertValidation(message.validation_context!, `${at}.validation_context`, conversion);
    case 'validation_context_sds_secret_config': {
      const configAt = `${at}.validation_context_sds_secret_config`;
      const config = message.validation_context_sds_secret_config!;
      const found = findSecret(config, 'validation_context', configAt, conversion);
      return found === undefined ? null : convertValidation(found.message, found.at, found.conversion);
    }
    case 'combined_validation_context':
      return convertCombined(message, `${at}.combined_validation_context`, conversion);
    default:
      return null;
  }
}

function convertCombined(message: CommonTlsContext, at: string, conversion: Conversion): TlsValidationSettings | null {
  const { default_validation_context: base, validation_context_sds_secret_config: config } =
    message.combined_validation_context!;
  // Both have already broken a field rule where they are missing.
  if (base === null || config === null) return null;
  const found = findSecret(
    config,
    'validation_context',
    `${at}.validation_context_sds_secret_config`,
    conversion,
    true,
  );
  return found === undefined ? null : convertValidation(overlaid(base, found.message), found.at, found.conversion);
}

/** As protobuf merges: what the secret sets replaces, its lists are appended. */
function overlaid(
  base: CertificateValidationContext,
  over: CertificateValidationContext,
): CertificateValidationContext {
  // With its prototype, which has the values of fields that nobody has set.
  const merged = Object.assign(Object.create(Object.getPrototypeOf(base) as object) as Record<string, unknown>, base);
  for (const [field, value] of Object.entries(over)) {
    const below = merged[field];
    if (Array.isArray(value)) merged[field] = Array.isArray(below) ? [...below, ...value] : value;
    else if (value !== null && value !== 0 && value !== false) merged[field] = value;
  }
  return merged as unknown as CertificateValidationContext;
}
