// Signatures of tokens (RFC 7518 section 3, RFC 8037): by each algorithm, with keys of its own kind alone, so that nobody can have a public key taken for
// a secret. There is no algorithm `none`. A verification takes 30 to 300 us; it is done in the call, since one by a thread takes as long again.

import { constants, createHmac, timingSafeEqual, verify } from 'node:crypto';
import type { KeyKind, VerificationKey } from '../../../base/json-web-keys.ts';

interface Algorithm {
  readonly kind: KeyKind;
  /** Null for one that needs none. */
  readonly digest: string | null;
  readonly isPss: boolean;
  /** 0 for any. */
  readonly signatureBytes: number;
}

const of = (kind: KeyKind, digest: string | null, signatureBytes = 0, isPss = false): Algorithm => ({
  kind,
  digest,
  isPss,
  signatureBytes,
});

const ALGORITHMS: ReadonlyMap<string, Algorithm> = new Map([
  ['RS256', of('RSA', 'sha256')],
  ['RS384', of('RSA', 'sha384')],
  ['RS512', of('RSA', 'sha512')],
  ['PS256', of('RSA', 'sha256', 0, true)],
  ['PS384', of('RSA', 'sha384', 0, true)],
  ['PS512', of('RSA', 'sha512', 0, true)],
  ['ES256', of('P-256', 'sha256', 64)],
  ['ES384', of('P-384', 'sha384', 96)],
  ['ES512', of('P-521', 'sha512', 132)],
  ['EdDSA', of('Ed25519', null, 64)],
  ['HS256', of('oct', 'sha256', 32)],
  ['HS384', of('oct', 'sha384', 48)],
  ['HS512', of('oct', 'sha512', 64)],
]);

export function isAlgorithm(name: string): boolean {
  return ALGORITHMS.has(name);
}

/** Whether a key may verify what says that it is signed by this algorithm. */
export function fits(key: VerificationKey, name: string): boolean {
  return (key.algorithm === null || key.algorithm === name) && ALGORITHMS.get(name)?.kind === key.kind;
}

/** @param key that fits the algorithm. */
export function isSigned({ key }: VerificationKey, name: string, data: Buffer, signature: Buffer): boolean {
  const { kind, digest, isPss, signatureBytes } = ALGORITHMS.get(name)!;
  if (signatureBytes > 0 && signature.length !== signatureBytes) return false;
  try {
    if (kind === 'oct') return timingSafeEqual(createHmac(digest!, key).update(data).digest(), signature);
    if (kind === 'RSA' && isPss) {
      const padding = constants.RSA_PKCS1_PSS_PADDING;
      return verify(digest, data, { key, padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }, signature);
    }
    if (kind === 'RSA') return verify(digest, data, { key, padding: constants.RSA_PKCS1_PADDING }, signature);
    return verify(digest, data, { key, dsaEncoding: 'ieee-p1363' }, signature);
  } catch {
    return false;
  }
}
