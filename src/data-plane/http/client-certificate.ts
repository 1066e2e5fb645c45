// X-Forwarded-Client-Cert: who the client of a connection has proved to be, for those behind. What a client says of that by
// itself is believed only where the configuration says so.
//
//   By=<URI of our certificate>;Hash=<SHA-256 of the client's>;Cert="…";Chain="…";Subject="…";URI=…;DNS=…

import { createHash, type X509Certificate } from 'node:crypto';
import type { ClientCertificateSettings } from '../../snapshot/index.ts';
import { HEADER_ID, type RequestHead } from '../../wasm/http1.ts';
import type { CertificateFacts, TlsFacts } from '../network/tls/connection-tls.ts';
import { headerText } from './header-text.ts';

const NAME = 'x-forwarded-client-cert';
/** OpenSSL verifies no longer chain by default than 100; nobody sends one of more than some. */
const MOST_CERTIFICATES = 16;
const FORWARDED_CLIENT_CERT = HEADER_ID[NAME];

/** @param settings undefined where every such header is dropped. */
export function forwardClientCertificate(
  head: RequestHead,
  settings: ClientCertificateSettings | undefined,
  tls: TlsFacts | null,
): void {
  if (settings?.mode === 'always-forward-only') return;
  const isProved = tls !== null && tls.peer !== null;
  if (settings === undefined || !isProved) {
    if (head.has(FORWARDED_CLIENT_CERT)) head.dropKnown(FORWARDED_CLIENT_CERT);
    return;
  }
  if (settings.mode === 'forward-only') return;
  const before = settings.mode === 'append-forward' ? head.header(FORWARDED_CLIENT_CERT) : undefined;
  if (head.has(FORWARDED_CLIENT_CERT)) head.dropKnown(FORWARDED_CLIENT_CERT);
  tls.forwardedDetails ??= details(tls.peer!, tls.own, settings);
  head.append(NAME, before ? `${before},${tls.forwardedDetails}` : tls.forwardedDetails);
}

function details(peer: CertificateFacts, own: CertificateFacts | null, settings: ClientCertificateSettings): string {
  const { certificate, names } = peer;
  const parts = (own?.names.uri ?? []).map((uri) => `By=${unambiguous(uri)}`);
  parts.push(`Hash=${createHash('sha256').update(certificate.raw).digest('hex')}`);
  if (settings.cert) parts.push(`Cert="${encodeURIComponent(certificate.toString())}"`);
  if (settings.chain) parts.push(`Chain="${encodeURIComponent(chainOf(certificate))}"`);
  if (settings.subject) parts.push(`Subject="${quotable(peer.subject)}"`);
  if (settings.uri) parts.push(...names.uri.map((uri) => `URI=${unambiguous(uri)}`));
  if (settings.dns) parts.push(...names.dns.map((dns) => `DNS=${unambiguous(dns)}`));
  return headerText(parts.join(';'));
}

/**
 * In PEM, from the client's own on. Without the root, which nobody believes for having been sent, and which Node may have
 * taken out of the authorities of this side where the client has sent its own alone.
 */
function chainOf(certificate: X509Certificate): string {
  let text = certificate.toString();
  let next = certificate.issuerCertificate;
  for (let length = 1; next !== undefined && length < MOST_CERTIFICATES && !isRoot(next); length += 1) {
    text += next.toString();
    next = next.issuerCertificate;
  }
  return text;
}

function isRoot({ subject, issuer }: X509Certificate): boolean {
  return subject === issuer;
}

/** A name that could be taken for several parts is put in quotes. */
function unambiguous(name: string): string {
  return /[,;"]/.test(name) ? `"${quotable(name)}"` : name;
}

function quotable(text: string): string {
  return text.replace(/["\\]/g, '\\$&');
}
