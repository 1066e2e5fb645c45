// A token (RFC 7519, RFC 7515 in its compact form) as it is written, before anything is believed of it.

import { isUtf8 } from 'node:buffer';
import { isJsonObject, type JsonObject, type JsonValue } from '../../../base/json.ts';
import { isAlgorithm } from './signature.ts';
import { JwtStatus } from './status.ts';

export interface Token {
  readonly algorithm: string;
  /** Empty for none. */
  readonly keyId: string;
  readonly header: JsonObject;
  readonly claims: JsonObject;
  /** Empty for none. */
  readonly issuer: string;
  readonly subject: string;
  readonly audiences: readonly string[];
  /** Seconds since the Unix epoch; null where nothing is said. */
  readonly expires: number | null;
  readonly notBefore: number | null;
  /** As it was written, without padding. */
  readonly payloadText: string;
  /** What is signed. */
  readonly signed: Buffer;
  readonly signature: Buffer;
}

const BASE64URL = /^[A-Za-z0-9_-]+$/;
/** Objects within each other: nobody means that many. */
const MAX_DEPTH = 32;

/** @returns what is wrong with it. */
export function parseToken(text: string): Token | JwtStatus {
  const parts = text.split('.');
  if (parts.length !== 3) return JwtStatus.badFormat;
  const [head, payload, signature] = parts as [string, string, string];
  const headBytes = decoded(head);
  if (headBytes === null) return JwtStatus.headerBadBase64;
  const header = objectOf(headBytes);
  if (header === null) return JwtStatus.headerBadJson;
  const { alg, kid, crit } = header;
  if (typeof alg !== 'string') return JwtStatus.headerBadAlgorithm;
  if (!isAlgorithm(alg)) return JwtStatus.headerUnknownAlgorithm;
  if (kid !== undefined && typeof kid !== 'string') return JwtStatus.headerBadKeyId;
  // Extensions that have to be understood; this one understands none (RFC 7515 section 4.1.11).
  if (crit !== undefined) return JwtStatus.headerCritical;
  const payloadBytes = decoded(payload);
  if (payloadBytes === null) return JwtStatus.payloadBadBase64;
  const claims = objectOf(payloadBytes);
  if (claims === null) return JwtStatus.payloadBadJson;
  const said = registeredClaims(claims);
  if (typeof said === 'string') return said;
  const signatureBytes = decoded(signature);
  if (signatureBytes === null) return JwtStatus.signatureBadBase64;
  return {
    algorithm: alg,
    keyId: kid ?? '',
    header,
    claims,
    ...said,
    payloadText: payload,
    signed: Buffer.from(`${head}.${payload}`, 'latin1'),
    signature: signatureBytes,
  };
}

type RegisteredClaims = Pick<Token, 'issuer' | 'subject' | 'audiences' | 'expires' | 'notBefore'>;

function registeredClaims({ iss = '', sub = '', aud = [], exp, nbf }: JsonObject): RegisteredClaims | JwtStatus {
  if (typeof iss !== 'string') return JwtStatus.payloadBadIssuer;
  if (typeof sub !== 'string') return JwtStatus.payloadBadSubject;
  const audiences = typeof aud === 'string' ? [aud] : aud;
  if (!isTextList(audiences)) return JwtStatus.payloadBadAudience;
  if (exp !== undefined && !isTime(exp)) return JwtStatus.payloadBadExpiration;
  if (nbf !== undefined && !isTime(nbf)) return JwtStatus.payloadBadNotBefore;
  return { issuer: iss, subject: sub, audiences, expires: exp ?? null, notBefore: nbf ?? null };
}

function isTextList(value: JsonValue): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function isTime(value: JsonValue): value is number {
  return typeof value === 'number' && value >= 0;
}

/** Strict: no padding, no other alphabet, no bits that are left over, so that a token can be written in one way only. */
function decoded(text: string): Buffer | null {
  if (!BASE64URL.test(text)) return null;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text ? bytes : null;
}

function objectOf(bytes: Buffer): JsonObject | null {
  if (!isUtf8(bytes)) return null;
  try {
    const value = JSON.parse(bytes.toString()) as JsonValue;
    return isJsonObject(value) && depthOf(value, MAX_DEPTH) ? value : null;
  } catch {
    return null;
  }
}

/** @returns whether it is no deeper. */
function depthOf(value: JsonValue, room: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return room > 0 && Object.values(value).every((item) => depthOf(item as JsonValue, room - 1));
}
