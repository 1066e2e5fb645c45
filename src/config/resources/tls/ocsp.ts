// OCSP responses (RFC 6960, DER): what has to be known of one before it is stapled to a certificate. Signatures are the clients' to
// judge.

import type { X509Certificate } from 'node:crypto';
import { derElementAt } from '../../../base/der.ts';
import type { OcspStaple } from '../../../snapshot/index.ts';

const SEQUENCE = 0x30;
const INTEGER = 0x02;
const ENUMERATED = 0x0a;
const OCTETS = 0x04;
const GENERALIZED_TIME = 0x18;
/** `[0]` around what it holds. */
const FIRST = 0xa0;
const SUCCESSFUL = 0;
/** The certificate asks for a staple by itself: TLS feature 5, status_request (RFC 7633). */
const MUST_STAPLE = Buffer.from('06082b0601050507011804053003020105', 'hex');

interface Element {
  readonly tag: number;
  readonly content: Buffer;
}

/** @returns what is wrong with it, to be said behind the name of its file. */
export function parseOcspResponse(der: Buffer, leaf: X509Certificate): OcspStaple | string {
  const [status, body] = inside(only(der, SEQUENCE));
  if (status?.tag !== ENUMERATED) return 'is no OCSP response in DER';
  if (status.content[0] !== SUCCESSFUL) return 'is an OCSP response that tells of a failure';
  const [, basic] = inside(only(body?.tag === FIRST ? body.content : undefined, SEQUENCE));
  const [data] = inside(only(basic?.tag === OCTETS ? basic.content : undefined, SEQUENCE));
  const responses = inside(data?.tag === SEQUENCE ? data.content : undefined).find(({ tag }) => tag === SEQUENCE);
  const answers = inside(responses?.content);
  const [answer] = answers;
  if (answer === undefined) return 'is no OCSP response in DER';
  if (answers.length > 1) return 'tells of several certificates';
  const [id, , thisUpdate, nextUpdate] = inside(answer.content);
  const serial = inside(id?.content)[3];
  const validFromMs = timeOf(thisUpdate);
  if (serial?.tag !== INTEGER || validFromMs === undefined) return 'is no OCSP response in DER';
  if (BigInt(`0x${serial.content.toString('hex') || '0'}`) !== BigInt(`0x${leaf.serialNumber}`)) {
    return 'tells of another certificate';
  }
  const expiresMs = nextUpdate?.tag === FIRST ? timeOf(inside(nextUpdate.content)[0]) : undefined;
  return { response: der, validFromMs, expiresMs: expiresMs ?? null };
}

export function mustBeStapled(leaf: X509Certificate): boolean {
  return leaf.raw.includes(MUST_STAPLE);
}

/** The content of the one element that there is. */
function only(der: Buffer | undefined, tag: number): Buffer | undefined {
  const elements = inside(der);
  return elements.length === 1 && elements[0]!.tag === tag ? elements[0]!.content : undefined;
}

/** The elements in the content of another; none where that is damaged. */
function inside(der: Buffer | undefined): readonly Element[] {
  if (der === undefined) return [];
  const elements: Element[] = [];
  for (let at = 0; at < der.length; ) {
    const element = derElementAt(der, at);
    if (element === null) return [];
    elements.push({ tag: element.tag, content: der.subarray(element.start, element.end) });
    at = element.end;
  }
  return elements;
}

/** Of `20260131235959Z`, the one form that is allowed. */
function timeOf(element: Element | undefined): number | undefined {
  if (element?.tag !== GENERALIZED_TIME) return undefined;
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/
    .exec(element.content.toString('latin1'))
    ?.slice(1)
    .map(Number);
  if (parts === undefined) return undefined;
  const [year, month, day, hour, minute, second] = parts as [number, number, number, number, number, number];
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
