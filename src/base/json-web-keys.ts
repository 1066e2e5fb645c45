// Sets of keys (RFC 7517, RFC 7518, RFC 8037), and which key a signature is verified with. Main reads a set to find its faults, workers to use it.

import { createPublicKey, createSecretKey, type KeyObject, X509Certificate } from 'node:crypto';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';

export type KeyKind = 'RSA' | 'P-256' | 'P-384' | 'P-521' | 'Ed25519' | 'oct';

export interface VerificationKey {
  /** Null where the set does not name it. */
  readonly id: string | null;
  /** The only algorithm that it is for; null for all of its kind. */
  readonly algorithm: string | null;
  readonly kind: KeyKind;
  readonly key: KeyObject;
}

const MAX_KEYS = 1000;
const MIN_RSA_BITS = 1024;
const MAX_RSA_BITS = 16_384;
const CURVES: ReadonlySet<string> = new Set(['P-256', 'P-384', 'P-521']);
const OF_CERTIFICATE: Readonly<Record<string, KeyKind>> = {
  prime256v1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
};

export type ParsedKeys =
  | { readonly keys: readonly VerificationKey[]; readonly error?: undefined }
  | { readonly keys?: undefined; readonly error: string };

/** Keys of kinds that nobody knows are left out. What is wrong never quotes what a set holds. */
export function parseKeySet(text: string): ParsedKeys {
  let set: JsonValue;
  try {
    set = JSON.parse(text) as JsonValue;
  } catch {
    return { error: 'is no JSON' };
  }
  if (!isJsonObject(set)) return { error: 'is no object' };
  const keys = 'keys' in set ? keysOf(set.keys!) : certificates(set);
  if (typeof keys === 'string') return { error: keys };
  return keys.length === 0 ? { error: 'has no key that can be used' } : { keys };
}

function keysOf(list: JsonValue): readonly VerificationKey[] | string {
  if (!Array.isArray(list)) return 'has keys that are no list';
  if (list.length > MAX_KEYS) return `has more than ${MAX_KEYS} keys`;
  return list.map(keyOf).filter((key) => key !== null);
}

/** From before there were sets: an object of certificates by the names of their keys. */
function certificates(set: JsonObject): readonly VerificationKey[] | string {
  const entries = Object.entries(set);
  if (entries.length > MAX_KEYS) return `has more than ${MAX_KEYS} keys`;
  return entries
    .map(([id, value]) => (typeof value === 'string' ? certified(value, id, null) : null))
    .filter((key) => key !== null);
}

function keyOf(value: JsonValue): VerificationKey | null {
  if (!isJsonObject(value)) return null;
  const { kty, use } = value;
  if (use !== undefined && use !== 'sig') return null;
  const id = textOr(value.kid);
  const algorithm = textOr(value.alg);
  try {
    switch (kty) {
      case 'RSA':
        if (value.n === undefined && Array.isArray(value.x5c) && typeof value.x5c[0] === 'string') {
          return certified(Buffer.from(value.x5c[0], 'base64'), id, algorithm);
        }
        return rsaKey(id, algorithm, publicKey({ kty, n: text(value.n), e: text(value.e) }));
      case 'EC': {
        const crv = text(value.crv);
        if (!CURVES.has(crv)) return null;
        const key = publicKey({ kty, crv, x: text(value.x), y: text(value.y) });
        return { id, algorithm, kind: crv as KeyKind, key };
      }
      case 'OKP': {
        const crv = text(value.crv);
        if (crv !== 'Ed25519') return null;
        return { id, algorithm, kind: crv, key: publicKey({ kty, crv, x: text(value.x) }) };
      }
      case 'oct': {
        const secret = Buffer.from(text(value.k), 'base64url');
        if (secret.length === 0) return null;
        return { id, algorithm, kind: 'oct', key: createSecretKey(secret) };
      }
      default:
        return null;
    }
  } catch {
    return null;
  }
}

function certified(certificate: string | Buffer, id: string | null, algorithm: string | null): VerificationKey | null {
  try {
    const key = new X509Certificate(certificate).publicKey;
    const kind = kindOf(key);
    if (kind === 'RSA') return rsaKey(id, algorithm, key);
    return kind === undefined ? null : { id, algorithm, kind, key };
  } catch {
    return null;
  }
}

/** A shorter one is broken, a longer one keeps a worker busy. */
function rsaKey(id: string | null, algorithm: string | null, key: KeyObject): VerificationKey | null {
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  return bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS ? { id, algorithm, kind: 'RSA', key } : null;
}

function kindOf(key: KeyObject): KeyKind | undefined {
  if (key.asymmetricKeyType === 'rsa') return 'RSA';
  if (key.asymmetricKeyType === 'ed25519') return 'Ed25519';
  return OF_CERTIFICATE[key.asymmetricKeyDetails?.namedCurve ?? ''];
}

function publicKey(key: Record<string, string>): KeyObject {
  return createPublicKey({ key, format: 'jwk' });
}

/** @throws TypeError for what is none. */
function text(value: JsonValue | undefined): string {
  if (typeof value !== 'string') throw new TypeError('not a text');
  return value;
}

function textOr(value: JsonValue | undefined): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
