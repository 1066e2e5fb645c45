// PEM texts with certificates in them.

import { X509Certificate } from 'node:crypto';

const CERTIFICATE_BLOCK =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[\s\S]+?-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g;

/** In their order. @returns the place of the first that is none, from 1, or 0 with an empty list when there is no block at all. */
export function parseCertificates(text: string): readonly X509Certificate[] | { readonly brokenAt: number } {
  const certificates: X509Certificate[] = [];
  for (const [block] of text.matchAll(CERTIFICATE_BLOCK)) {
    try {
      certificates.push(new X509Certificate(block));
    } catch {
      return { brokenAt: certificates.length + 1 };
    }
  }
  return certificates.length === 0 ? { brokenAt: 0 } : certificates;
}

export function brokenPem(brokenAt: number): string {
  return brokenAt === 0 ? 'holds no certificate in PEM' : `certificate ${brokenAt} of it is damaged`;
}

/** Texts of one kind out of X509Certificate.subjectAltName, where quotes protect commas. */
export function altNames(certificate: X509Certificate, kind: 'DNS' | 'URI' | 'IP Address' | 'email'): string[] {
  const names = splitAltNames(certificate.subjectAltName ?? '');
  const start = `${kind}:`;
  return names.filter((name) => name.startsWith(start)).map((name) => unquote(name.slice(start.length)));
}

function splitAltNames(text: string): string[] {
  return text.match(/[^,"\s](?:"(?:\\.|[^"\\])*"|[^,"])*/g) ?? [];
}

function unquote(text: string): string {
  return text.startsWith('"') ? (JSON.parse(text) as string) : text;
}

/** What servers the certificate is for: its DNS names or, without any, its common name. Lower case. */
export function serverNamesOf(certificate: X509Certificate): string[] {
  const names = altNames(certificate, 'DNS');
  const own = names.length > 0 ? names : (/^CN=(.+)$/m.exec(certificate.subject)?.slice(1) ?? []);
  return own.map((name) => name.toLowerCase());
}
