// TlsCertificate messages → certificates with their keys, read and held against each other. Files are read here, when the
// configuration is loaded, and once more by whoever finds that they have changed.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { SYSTEM_CLOCK } from '../../../base/clock.ts';
import type {
  OcspStaple,
  TlsCertificateSettings,
  TlsCertificateSources,
  TlsIdentity,
} from '../../../snapshot/index.ts';
import type { Conversion } from '../conversion.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { TlsCertificate } from '../messages.ts';
import { mustBeStapled, parseOcspResponse } from './ocsp.ts';
import { brokenPem, parseCertificates, serverNamesOf } from './pem.ts';
import { convertSource, readSource, sourceName } from './source.ts';

/** @returns undefined after a fault. */
export function convertCertificate(
  message: TlsCertificate,
  at: string,
  given: Conversion,
): TlsCertificateSettings | undefined {
  const conversion = { ...given, trail: given.trail?.inFolder(message.watched_directory) };
  const source = (field: 'certificate_chain' | 'private_key' | 'password' | 'pkcs12' | 'ocsp_staple') =>
    convertSource(message[field], `${at}.${field}`, conversion);
  const sources: TlsCertificateSources = {
    chain: source('certificate_chain'),
    key: source('private_key'),
    password: source('password'),
    pkcs12: source('pkcs12'),
    ocspStaple: source('ocsp_staple'),
  };
  return loadCertificate(sources, at, conversion.faults);
}

/** @param at path of the message. @returns undefined after a fault. */
export function loadCertificate(
  sources: TlsCertificateSources,
  at: string,
  faults: FaultSink,
): TlsCertificateSettings | undefined {
  const password = readSource(sources.password, `${at}.password`, faults);
  const passphrase = password?.toString().replace(/\r?\n$/, '');
  const read =
    sources.pkcs12 === null
      ? loadPem(sources, passphrase, at, faults)
      : loadBundle(sources, passphrase ?? '', at, faults);
  if (read === undefined || (sources.password !== null && password === null)) return undefined;
  const { identity, leaf } = read;
  warnOfDates(leaf, sources, at, faults);
  const staple = loadStaple(sources, leaf, at, faults);
  const isMust = mustBeStapled(leaf);
  if (isMust && sources.ocspStaple === null) {
    faults.error(`${at}.ocsp_staple`, 'is missing for a certificate that says it must be stapled');
  }
  return {
    sources,
    identity,
    leaf: leaf.toString(),
    keyType: leaf.publicKey.asymmetricKeyType ?? 'unknown',
    serverNames: serverNamesOf(leaf),
    staple,
    mustBeStapled: isMust,
  };
}

interface LoadedIdentity {
  readonly identity: TlsIdentity;
  readonly leaf: X509Certificate;
}

function loadPem(
  { chain, key }: TlsCertificateSources,
  passphrase: string | undefined,
  at: string,
  faults: FaultSink,
): LoadedIdentity | undefined {
  if (chain === null || key === null) {
    const [given, missing] =
      chain === null ? ['private_key', 'certificate_chain'] : ['certificate_chain', 'private_key'];
    faults.error(
      at,
      chain === key ? 'needs certificate_chain and private_key, or pkcs12' : `${given} needs ${missing}`,
    );
    return undefined;
  }
  const chainAt = `${at}.certificate_chain`;
  const keyAt = `${at}.private_key`;
  const chainText = readSource(chain, chainAt, faults)?.toString('latin1');
  const keyText = readSource(key, keyAt, faults);
  if (chainText === undefined || keyText === null) return undefined;
  const certificates = parseCertificates(chainText);
  if ('brokenAt' in certificates) {
    faults.error(chainAt, `${sourceName(chain)} ${brokenPem(certificates.brokenAt)}`);
    return undefined;
  }
  const privateKey = readKey(keyText, passphrase);
  if (typeof privateKey === 'string') {
    faults.error(keyAt, `${sourceName(key)} ${privateKey}`);
    return undefined;
  }
  const leaf = certificates[0]!;
  if (!leaf.checkPrivateKey(privateKey)) {
    faults.error(keyAt, `${sourceName(key)} is not the key of the certificate in ${sourceName(chain)}`);
    return undefined;
  }
  const identity = {
    kind: 'pem',
    chain: certificates.join(''),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  } as const;
  const reason = contextFault({ cert: identity.chain, key: identity.key });
  if (reason === undefined) return { identity, leaf };
  faults.error(chainAt, `${sourceName(chain)} cannot be used: ${reason}`);
  return undefined;
}

/** @returns what is wrong with it, without a word of what it holds. */
function readKey(pem: Buffer, passphrase: string | undefined): KeyObject | string {
  try {
    return createPrivateKey(passphrase === undefined ? { key: pem } : { key: pem, passphrase });
  } catch {
    if (!pem.includes('ENCRYPTED')) return 'holds no private key in PEM';
    return passphrase === undefined
      ? 'is encrypted, and no password is given'
      : 'cannot be decrypted with the password given';
  }
}

function loadBundle(
  { pkcs12, chain, key }: TlsCertificateSources,
  password: string,
  at: string,
  faults: FaultSink,
): LoadedIdentity | undefined {
  const bundleAt = `${at}.pkcs12`;
  if (chain !== null || key !== null) {
    faults.error(bundleAt, 'takes the place of certificate_chain and private_key, which must not stand beside it');
    return undefined;
  }
  const bundle = readSource(pkcs12, bundleAt, faults);
  if (bundle === null) return undefined;
  try {
    const { context } = createSecureContext({ pfx: bundle, passphrase: password, ca: [] });
    const leaf = new X509Certificate((context as { getCertificate(): Buffer }).getCertificate());
    return { identity: { kind: 'pkcs12', bundle, password }, leaf };
  } catch (error) {
    const isPassword = /mac verify failure/.test((error as Error).message);
    const reason = isPassword
      ? 'cannot be opened with the password given'
      : 'is no PKCS#12 bundle with a certificate and its key';
    faults.error(bundleAt, `${sourceName(pkcs12)} ${reason}`);
    return undefined;
  }
}

function loadStaple(
  { ocspStaple }: TlsCertificateSources,
  leaf: X509Certificate,
  at: string,
  faults: FaultSink,
): OcspStaple | null {
  const stapleAt = `${at}.ocsp_staple`;
  const bytes = readSource(ocspStaple, stapleAt, faults);
  if (bytes === null) return null;
  const staple = parseOcspResponse(bytes, leaf);
  if (typeof staple === 'string') {
    faults.error(stapleAt, `${sourceName(ocspStaple)} ${staple}`);
    return null;
  }
  if (staple.expiresMs !== null && staple.expiresMs < SYSTEM_CLOCK.wallMs()) {
    faults.warning(stapleAt, `${sourceName(ocspStaple)} expired on ${day(new Date(staple.expiresMs))}`);
  }
  return staple;
}

/** What OpenSSL says against a certificate, such as a key that is too small; undefined for nothing. */
function contextFault(options: { readonly cert: string; readonly key: string }): string | undefined {
  try {
    createSecureContext({ ...options, ca: [] });
    return undefined;
  } catch (error) {
    return (error as { reason?: string }).reason ?? 'OpenSSL refuses it';
  }
}

/** Clients refuse it, which the proxy that must start again at night does better than not to start. */
function warnOfDates(leaf: X509Certificate, sources: TlsCertificateSources, at: string, faults: FaultSink): void {
  const field = sources.pkcs12 === null ? 'certificate_chain' : 'pkcs12';
  const name = sourceName(sources.pkcs12 ?? sources.chain);
  const nowMs = SYSTEM_CLOCK.wallMs();
  if (leaf.validToDate.getTime() < nowMs)
    faults.warning(`${at}.${field}`, `${name} expired on ${day(leaf.validToDate)}`);
  if (leaf.validFromDate.getTime() > nowMs) {
    faults.warning(`${at}.${field}`, `${name} is not valid before ${day(leaf.validFromDate)}`);
  }
}

function day(date: Date): string {
  return date.toISOString().slice(0, 10);
}
