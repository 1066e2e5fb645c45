// What secure contexts are made of: settings that the configuration has checked. For both sides of a proxy.

import { DEFAULT_CIPHERS, getCACertificates, rootCertificates, type SecureContextOptions } from 'node:tls';
import type { TlsCertificateSettings, TlsSettings, TlsValidationSettings } from '../snapshot/index.ts';

/** Empty before the first question: a start without TLS loads nothing of it. */
let knownCiphers = '';

/**
 * Of TLS 1.2, Node puts those of RSA first, and a server with certificates of both kinds would sign by the key that costs it
 * some ten times as much. These are Node's, those of ECDSA first, as OpenSSL itself and the other proxies have them.
 */
function defaultCiphers(): string {
  if (knownCiphers === '') knownCiphers = ecdsaFirst(DEFAULT_CIPHERS.split(':')).join(':');
  return knownCiphers;
}

function ecdsaFirst(names: readonly string[]): string[] {
  const rank = (name: string): number => (name.startsWith('TLS_') ? 0 : name.startsWith('ECDHE-ECDSA-') ? 1 : 2);
  return names.toSorted((left, right) => rank(left) - rank(right));
}

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
    ciphers: ciphers === '' ? defaultCiphers() : ciphers,
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
  const ca = trusted === 'system' ? systemAuthorities() : trusted === null ? [] : [trusted];
  return { ca, ...(validation?.crl ? { crl: validation.crl } : {}) };
}

/** Those of the system, or where it has none, as in small containers, those that Node brings. */
function systemAuthorities(): string[] {
  const installed = getCACertificates('system');
  return [...(installed.length === 0 ? rootCertificates : installed)];
}
