// What secure contexts of one worker are made of: settings that the configuration has checked. For both sides of a proxy.

import { rootCertificates, type SecureContextOptions } from 'node:tls';
import type { TlsCertificateSettings, TlsSettings, TlsValidationSettings } from '../../../snapshot/index.ts';

/**
 * What settings mean for OpenSSL, but for what only one side has.
 * @param certificates of different key types: one of them is presented.
 */
export function secureContextOptions(
  settings: TlsSettings,
  certificates: readonly TlsCertificateSettings[] = settings.certificates,
): SecureContextOptions {
  const pem = certificates.flatMap(({ identity }) => (identity.kind === 'pem' ? [identity] : []));
  const bundles = certificates.flatMap(({ identity }) => (identity.kind === 'pkcs12' ? [identity] : []));
  const { minVersion, maxVersion, ciphers, curves, signatureAlgorithms } = settings;
  return {
    minVersion,
    maxVersion,
    ...(ciphers === '' ? {} : { ciphers }),
    ...(curves === '' ? {} : { ecdhCurve: curves }),
    ...(signatureAlgorithms === '' ? {} : { sigalgs: signatureAlgorithms }),
    cert: pem.map(({ chain }) => chain),
    key: pem.map(({ key }) => key),
    pfx: bundles.map(({ bundle, password }) => ({ buf: Buffer.from(bundle), passphrase: password })),
    ...authoritiesOf(settings.validation),
  };
}

/** An empty list keeps Node from trusting whom it knows, and from reading their certificates for each context. */
function authoritiesOf(validation: TlsValidationSettings | null): Pick<SecureContextOptions, 'ca' | 'crl'> {
  const trusted = validation?.trustedCa ?? null;
  const ca = trusted === 'system' ? [...rootCertificates] : trusted === null ? [] : [trusted];
  return { ca, ...(validation?.crl ? { crl: validation.crl } : {}) };
}
