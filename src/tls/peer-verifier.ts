// Judges the certificate of a peer beyond what OpenSSL has said about its chain: by its hash, its key and its names.

import { createHash, type X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { type AltNames, altNames } from '../base/alt-names.ts';
import { compileStringMatch, type StringTest } from '../base/string-match.ts';
import type { SubjectAltNameMatch, TlsValidationSettings } from '../snapshot/index.ts';

/** Why a certificate is refused; null when it is not. */
export type PeerFault = 'untrusted' | 'hash' | 'name' | null;

interface NameTest {
  readonly type: SubjectAltNameMatch['type'];
  readonly test: StringTest;
}

export class PeerVerifier {
  readonly #verifiesChain: boolean;
  readonly #certificateHashes: ReadonlySet<string>;
  readonly #spkiHashes: ReadonlySet<string>;
  readonly #names: readonly NameTest[];

  constructor(settings: TlsValidationSettings) {
    this.#verifiesChain = settings.trustedCa !== null && !settings.acceptsUntrusted;
    this.#certificateHashes = new Set(settings.certificateHashes);
    this.#spkiHashes = new Set(settings.spkiHashes);
    this.#names = settings.subjectAltNames.map(nameTest);
  }

  /**
   * Once per handshake.
   * @param isTrusted whether OpenSSL has found the chain to lead to an authority.
   * @param name takes the place of the names in the settings; empty for those.
   */
  check(certificate: X509Certificate, isTrusted: boolean, name = ''): PeerFault {
    if (this.#verifiesChain && !isTrusted) return 'untrusted';
    const tests = name === '' ? this.#names : [serverTest(name)];
    if (tests.length > 0) {
      const names = altNames(certificate);
      if (!tests.some((test) => matches(test, names))) return 'name';
    }
    return this.#fitsHash(certificate) ? null : 'hash';
  }

  /** One hash of either kind is enough. */
  #fitsHash(certificate: X509Certificate): boolean {
    if (this.#certificateHashes.size === 0 && this.#spkiHashes.size === 0) return true;
    const own = createHash('sha256').update(certificate.raw).digest('hex');
    if (this.#certificateHashes.has(own)) return true;
    const spki = certificate.publicKey.export({ type: 'spki', format: 'der' });
    return this.#spkiHashes.has(createHash('sha256').update(spki).digest('base64'));
  }
}

/** @param name of a server, or its address. */
function serverTest(name: string): NameTest {
  const match = { kind: 'exact', value: name, ignoresCase: false } as const;
  return nameTest({ type: isIP(name) === 0 ? 'dns' : 'ip', match });
}

/** A DNS name that is asked for exactly fits a certificate with a wildcard for it, too. */
function nameTest({ type, match }: SubjectAltNameMatch): NameTest {
  if (type !== 'dns' || match.kind !== 'exact') return { type, test: compileStringMatch(match) };
  const wanted = match.value.toLowerCase();
  const dot = wanted.indexOf('.');
  const wildcard = dot > 0 ? `*${wanted.slice(dot)}` : wanted;
  return {
    type,
    test: (name) => {
      const lower = name.toLowerCase();
      return lower === wanted || lower === wildcard;
    },
  };
}

function matches({ type, test }: NameTest, names: AltNames): boolean {
  if (type !== 'any') return names[type].some(test);
  return names.dns.some(test) || names.uri.some(test) || names.email.some(test) || names.ip.some(test);
}
