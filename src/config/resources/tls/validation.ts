// CertificateValidationContext messages → how the certificates of peers are judged.

import type { SubjectAltNameMatch, TlsValidationSettings, TlsValidationSources } from '../../../snapshot/index.ts';
import {
  SubjectAltNameMatcher_SanType as SanType,
  CertificateValidationContext_TrustChainVerification as TrustChainVerification,
} from '../../proto/generated/enums.ts';
import type { Conversion } from '../conversion.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { CertificateValidationContext, SubjectAltNameMatcher } from '../messages.ts';
import { convertStringMatcher } from '../string-match.ts';
import { brokenPem, parseCertificates } from './pem.ts';
import { convertSource, readSource, sourceName } from './source.ts';

const CRL_BLOCK = /-----BEGIN X509 CRL-----[\s\S]+?-----END X509 CRL-----/;
const SAN_TYPES: Readonly<Record<number, SubjectAltNameMatch['type']>> = {
  [SanType.EMAIL]: 'email',
  [SanType.DNS]: 'dns',
  [SanType.URI]: 'uri',
  [SanType.IP_ADDRESS]: 'ip',
};

/** @param isPart it is to be laid over another one, which may say what is missing here. */
export function convertValidation(
  message: CertificateValidationContext,
  at: string,
  given: Conversion,
  isPart = false,
): TlsValidationSettings {
  const conversion = { ...given, trail: given.trail?.inFolder(message.watched_directory) };
  const { faults } = conversion;
  const sources: TlsValidationSources = {
    trustedCa: convertSource(message.trusted_ca, `${at}.trusted_ca`, conversion),
    crl: convertSource(message.crl, `${at}.crl`, conversion),
  };
  const { trustedCa, crl } = loadAuthorities(sources, at, faults);
  const subjectAltNames = convertMatchers(message, at, faults);
  const trusted = trustedCa ?? (message.system_root_certs === null ? null : 'system');
  if (sources.trustedCa !== null && message.system_root_certs !== null) {
    faults.warning(`${at}.system_root_certs`, 'trusted_ca takes its place');
  }
  // Where authorities cannot be read that has been said, and is the only fault.
  const isTrustWanted = trusted !== null || message.trusted_ca !== null || isPart;
  if (!isTrustWanted && subjectAltNames.length > 0) {
    faults.error(at, 'names of a certificate say nothing unless trusted_ca says whom to believe');
  }
  if (!isTrustWanted && sources.crl !== null) faults.error(`${at}.crl`, 'needs trusted_ca');
  return {
    sources,
    trustedCa: trusted,
    crl,
    acceptsUntrusted: message.trust_chain_verification === TrustChainVerification.ACCEPT_UNTRUSTED,
    certificateHashes: message.verify_certificate_hash.map((hash, index) =>
      certificateHash(hash, `${at}.verify_certificate_hash[${index}]`, faults),
    ),
    spkiHashes: message.verify_certificate_spki.map((hash, index) =>
      spkiHash(hash, `${at}.verify_certificate_spki[${index}]`, faults),
    ),
    subjectAltNames,
  };
}

/** @returns what the files of a context hold; null for none, and after a fault. */
export function loadAuthorities(
  sources: TlsValidationSources,
  at: string,
  faults: FaultSink,
): { readonly trustedCa: string | null; readonly crl: string | null } {
  const authorities = readSource(sources.trustedCa, `${at}.trusted_ca`, faults)?.toString('latin1') ?? null;
  const crl = readSource(sources.crl, `${at}.crl`, faults)?.toString('latin1') ?? null;
  if (crl !== null && !CRL_BLOCK.test(crl)) {
    faults.error(`${at}.crl`, `${sourceName(sources.crl)} holds no certificate revocation list in PEM`);
  }
  const parsed = authorities === null ? null : parseCertificates(authorities);
  if (parsed === null) return { trustedCa: null, crl };
  if (!('brokenAt' in parsed)) return { trustedCa: parsed.join(''), crl };
  faults.error(`${at}.trusted_ca`, `${sourceName(sources.trustedCa)} ${brokenPem(parsed.brokenAt)}`);
  return { trustedCa: null, crl };
}

/** Typed ones, or the older ones, which hold for names of every type. */
function convertMatchers(message: CertificateValidationContext, at: string, faults: FaultSink): SubjectAltNameMatch[] {
  const typed = message.match_typed_subject_alt_names;
  if (typed.length > 0) {
    return typed.flatMap((matcher, index) =>
      typedMatch(matcher, `${at}.match_typed_subject_alt_names[${index}]`, faults),
    );
  }
  const exact = message.verify_subject_alt_name.map((value): SubjectAltNameMatch => {
    return { type: 'any', match: { kind: 'exact', value, ignoresCase: false } };
  });
  const untyped = message.match_subject_alt_names.flatMap((matcher, index): SubjectAltNameMatch[] => {
    const match = convertStringMatcher(matcher, `${at}.match_subject_alt_names[${index}]`, faults);
    return match === undefined ? [] : [{ type: 'any', match }];
  });
  return [...exact, ...untyped];
}

function typedMatch(message: SubjectAltNameMatcher, at: string, faults: FaultSink): SubjectAltNameMatch[] {
  const type = SAN_TYPES[message.san_type];
  // Other types have been refused by the support table.
  if (type === undefined || message.matcher === null) return [];
  const match = convertStringMatcher(message.matcher, `${at}.matcher`, faults);
  return match === undefined ? [] : [{ type, match }];
}

/** Written with or without colons. */
function certificateHash(text: string, at: string, faults: FaultSink): string {
  const digits = text.replaceAll(':', '').toLowerCase();
  if (!/^[0-9a-f]{64}$/.test(digits)) faults.error(at, 'is not a SHA-256 hash of 64 hexadecimal digits');
  return digits;
}

function spkiHash(text: string, at: string, faults: FaultSink): string {
  if (!/^[\w+/]{43}=$/.test(text)) faults.error(at, 'is not a SHA-256 hash in base64');
  return text;
}
