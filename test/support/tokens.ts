// Tokens, and keys that they are signed with, made by the test's own means.

import { constants, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

export interface Signer {
  readonly alg: string;
  readonly kid: string;
  /** For a set of keys. */
  readonly jwk: Record<string, unknown>;
  readonly signature: (data: Buffer) => Buffer;
}

export function tokenOf(
  { alg, kid, signature }: Signer,
  claims: unknown,
  header: Record<string, unknown> = {},
): string {
  const text = `${part({ alg, typ: 'JWT', kid, ...header })}.${part(claims)}`;
  return `${text}.${signature(Buffer.from(text)).toString('base64url')}`;
}

export function keySet(...signers: readonly Signer[]): string {
  return JSON.stringify({ keys: signers.map(({ jwk }) => jwk) });
}

function exported(key: KeyObject, kid: string): Record<string, unknown> {
  return { ...key.export({ format: 'jwk' }), kid };
}

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });

export function rsaSigner(alg: string, kid = alg): Signer {
  const digest = `sha${alg.slice(2)}`;
  const padding = alg.startsWith('PS')
    ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
    : {};
  return {
    alg,
    kid,
    jwk: exported(rsa.publicKey, kid),
    signature: (data) => sign(digest, data, { key: rsa.privateKey, ...padding }),
  };
}

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };

export function curveSigner(alg: string, kid = alg): Signer {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: CURVES[alg]! });
  return {
    alg,
    kid,
    jwk: exported(publicKey, kid),
    signature: (data) => sign(`sha${alg.slice(2)}`, data, { key: privateKey, dsaEncoding: 'ieee-p1363' }),
  };
}

export function edwardsSigner(kid = 'EdDSA'): Signer {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return { alg: 'EdDSA', kid, jwk: exported(publicKey, kid), signature: (data) => sign(null, data, privateKey) };
}

export function secretSigner(
  alg: string,
  secret: Buffer = Buffer.from('a secret of thirty-two bytes ...'),
  kid = alg,
): Signer {
  const signature = (data: Buffer): Buffer =>
    createHmac(`sha${alg.slice(2)}`, secret)
      .update(data)
      .digest();
  return { alg, kid, jwk: { kty: 'oct', k: secret.toString('base64url'), kid }, signature };
}

/** Of everybody who may sign. */
export const SIGNERS: readonly Signer[] = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'].map((alg) => rsaSigner(alg)),
  ...['ES256', 'ES384', 'ES512'].map((alg) => curveSigner(alg)),
  edwardsSigner(),
  ...['HS256', 'HS384', 'HS512'].map((alg) => secretSigner(alg)),
];

/** The public key as text, which is no secret. */
export const PUBLIC_PEM: string = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString();
