// PEM texts with certificates in them.

import { X509Certificate } from 'node:crypto';
import { altNames } from '../../../base/alt-names.ts';

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

/** What servers the certificate is for: its DNS names or, without any, its common name. Lower case. */
export function serverNamesOf(certificate: X509Certificate): string[] {
  const names = altNames(certificate).dns;
  const own = names.length > 0 ? names : (/^CN=(.+)$/m.exec(certificate.subject)?.slice(1) ?? []);
  return own.map((name) => name.toLowerCase());
}
