// Which of several certificates a client gets, known before OpenSSL chooses: a key type that the client can verify for certain, or
// none, and then OpenSSL chooses. Asked where responses of OCSP lie beside certificates of several key types, and of clients only
// that want one.
//
// The order is OpenSSL's own: ECDSA, Ed25519, RSA. What is certain is less than what OpenSSL knows; a wrong yes would cost the
// client its handshake, a wrong no the response.
// Source: RFC 8446 sections 4.2.3 and 4.4.2.2; RFC 8422 sections 2 and 5.1; RFC 5246 section 7.4.1.4.1.

import { X509Certificate } from 'node:crypto';
import type { DownstreamTlsSettings, TlsCertificateSettings } from '../../../snapshot/index.ts';
import type { CertificateChoice, ServerContexts } from '../../network/tls/server-contexts.ts';
import { CLIENT_HELLO, ClientHelloReader, type ClientOffers } from '../listener-filter/client-hello.ts';

const TLS13 = 0x0304;
const MAX_HELLO_BYTES = 64 * 1024;

/** By OpenSSL's name of the curve: its group, and the signature that TLS 1.3 has it make. */
const CURVES: Readonly<Record<string, { readonly group: number; readonly algorithm: number }>> = {
  prime256v1: { group: 0x0017, algorithm: 0x0403 },
  secp384r1: { group: 0x0018, algorithm: 0x0503 },
  secp521r1: { group: 0x0019, algorithm: 0x0603 },
};
const ED25519 = 0x0807;
/** RSASSA-PSS with SHA-256, 384 and 512, by keys for any use: TLS 1.3 takes no older form. */
const RSA_PSS = [0x0804, 0x0805, 0x0806];
/** TLS 1.2, with SHA-256 and more; SHA-1 is nothing to be certain of. */
const ECDSA_OF_TLS12 = [0x0403, 0x0503, 0x0603];
const RSA_OF_TLS12 = [...RSA_PSS, 0x0401, 0x0501, 0x0601];

/** Cipher suites of TLS 1.2 by what the key has to be: those that are enabled unless the configuration lists others. */
const ECDSA_CIPHERS = new Map([
  [0xc02b, 'ECDHE-ECDSA-AES128-GCM-SHA256'],
  [0xc02c, 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  [0xcca9, 'ECDHE-ECDSA-CHACHA20-POLY1305'],
]);
const RSA_CIPHERS = new Map([
  [0xc02f, 'ECDHE-RSA-AES128-GCM-SHA256'],
  [0xc030, 'ECDHE-RSA-AES256-GCM-SHA384'],
  [0xcca8, 'ECDHE-RSA-CHACHA20-POLY1305'],
]);
const ORDER = ['ec', 'ed25519', 'rsa'];

/** A client's offers, less what this side would not take. */
interface Common {
  readonly offers: ClientOffers;
  readonly isTls13: boolean;
  readonly hasCipher: (known: ReadonlyMap<number, string>) => boolean;
}

export class ClientKeyTypes {
  readonly #contexts: ServerContexts;
  /** These are OpenSSL's own. */
  readonly #hasOwnAlgorithms: boolean;
  readonly #hasOwnCurves: boolean;
  readonly #speaksTls13: boolean;
  /** OpenSSL's names; empty for all of its own choice. */
  readonly #ciphers: readonly string[];
  readonly #reader = new ClientHelloReader(true);
  readonly #curves = new Map<TlsCertificateSettings, string | undefined>();

  constructor({ maxVersion, ciphers, curves, signatureAlgorithms }: DownstreamTlsSettings, contexts: ServerContexts) {
    this.#contexts = contexts;
    this.#speaksTls13 = maxVersion === 'TLSv1.3';
    this.#ciphers = ciphers === '' ? [] : ciphers.split(':');
    this.#hasOwnAlgorithms = signatureAlgorithms === '';
    this.#hasOwnCurves = curves === '';
  }

  /** @param bytes the client's first ones; borrowed. @returns null where OpenSSL is to choose. */
  of(bytes: Buffer): string | null {
    const reader = this.#reader;
    if (!this.#hasOwnAlgorithms || reader.read(bytes, 0, bytes.length, MAX_HELLO_BYTES) !== CLIENT_HELLO) return null;
    const { offers, serverName } = reader;
    if (!offers.asksForStatus) return null;
    const choice = (serverName === '' ? undefined : this.#contexts.find(serverName)) ?? this.#contexts.first;
    if (choice.alone === null) return null;
    return this.#choose(choice, {
      offers,
      isTls13: this.#speaksTls13 && offers.versions.includes(TLS13),
      hasCipher: (known) => offers.ciphers.some((code) => this.#isEnabled(known.get(code))),
    });
  }

  #isEnabled(cipher: string | undefined): boolean {
    return cipher !== undefined && (this.#ciphers.length === 0 || this.#ciphers.includes(cipher));
  }

  #choose({ certificates }: CertificateChoice, common: Common): string | null {
    for (const keyType of ORDER) {
      const certificate = certificates.find((each) => each.keyType === keyType);
      if (certificate !== undefined && this.#isVerifiable(certificate, common)) return keyType;
    }
    return null;
  }

  #isVerifiable(certificate: TlsCertificateSettings, { offers, isTls13, hasCipher }: Common): boolean {
    const takes = (algorithms: readonly number[]): boolean =>
      algorithms.some((algorithm) => offers.signatureAlgorithms.includes(algorithm));
    if (certificate.keyType === 'ed25519') return isTls13 && takes([ED25519]);
    if (certificate.keyType === 'rsa') {
      return isTls13 ? takes(RSA_PSS) : takes(RSA_OF_TLS12) && hasCipher(RSA_CIPHERS);
    }
    const curve = CURVES[this.#curveOf(certificate) ?? ''];
    if (curve === undefined) return false;
    if (isTls13) return takes([curve.algorithm]);
    const hasGroup = this.#hasOwnCurves && offers.groups.includes(curve.group);
    return hasGroup && takes(ECDSA_OF_TLS12) && hasCipher(ECDSA_CIPHERS);
  }

  #curveOf(certificate: TlsCertificateSettings): string | undefined {
    if (!this.#curves.has(certificate)) {
      const details = new X509Certificate(certificate.leaf).publicKey.asymmetricKeyDetails;
      this.#curves.set(certificate, details?.namedCurve);
    }
    return this.#curves.get(certificate);
  }
}
