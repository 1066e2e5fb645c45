// Subject alternative names of a certificate, by their kinds. Node has them as one text, in which quotes protect commas.

import type { X509Certificate } from 'node:crypto';

export interface AltNames {
  readonly dns: readonly string[];
  readonly uri: readonly string[];
  readonly email: readonly string[];
  readonly ip: readonly string[];
}

const KINDS = { DNS: 'dns', URI: 'uri', email: 'email', 'IP Address': 'ip' } as const;
const NAME = /([A-Za-z][A-Za-z ]*):((?:"(?:\\.|[^"\\])*"|[^,"])*)(?:, |$)/g;

export function altNames({ subjectAltName }: Pick<X509Certificate, 'subjectAltName'>): AltNames {
  const names = { dns: [] as string[], uri: [] as string[], email: [] as string[], ip: [] as string[] };
  for (const [, kind, text] of (subjectAltName ?? '').matchAll(NAME)) {
    const list = KINDS[kind as keyof typeof KINDS];
    if (list !== undefined) names[list].push(text!.startsWith('"') ? (JSON.parse(text!) as string) : text!);
  }
  return names;
}
