// The certificates that are in use, and when the first of them expires. Main thread. Each is parsed once, when somebody asks.

import { X509Certificate } from 'node:crypto';
import { altNames } from '../../base/alt-names.ts';
import { canonicalIp } from '../../base/ip-number.ts';
import type { TlsSettings, TlsSource } from '../../snapshot/index.ts';

export interface LoadedCertificate {
  /** Of its file, or `<inline>`. */
  readonly path: string;
  /** In hexadecimal digits. */
  readonly serialNumber: string;
  readonly dnsNames: readonly string[];
  readonly uris: readonly string[];
  readonly ipAddresses: readonly string[];
  /** Milliseconds since the Unix epoch. */
  readonly validFromMs: number;
  readonly expiresMs: number;
  /** Null for none. */
  readonly ocsp: OcspValidity | null;
}

/** Of the OCSP response that is stapled. */
export interface OcspValidity {
  readonly validFromMs: number;
  /** Null where it does not say. */
  readonly expiresMs: number | null;
}

/** Those of one filter chain. */
export interface LoadedCertificates {
  /** Whom it trusts; of several in one file the first. */
  readonly authorities: readonly LoadedCertificate[];
  /** Its own, without those that they lead to. */
  readonly chains: readonly LoadedCertificate[];
}

const INLINE = '<inline>';
const DAY_MS = 24 * 60 * 60 * 1000;

export class CertificateInventory {
  readonly #contexts: () => Iterable<TlsSettings>;
  readonly #parsed = new WeakMap<TlsSettings, LoadedCertificates>();

  /** @param contexts those in use now. */
  constructor(contexts: () => Iterable<TlsSettings>) {
    this.#contexts = contexts;
  }

  /** One entry for each context, in their order. */
  list(): readonly LoadedCertificates[] {
    return [...this.#contexts()].map((settings) => {
      const known = this.#parsed.get(settings) ?? parse(settings);
      this.#parsed.set(settings, known);
      return known;
    });
  }

  /** Whole days, 0 when one has expired. @returns undefined when there is no certificate. */
  daysUntilFirstExpires(nowMs: number): number | undefined {
    const ends = this.list().flatMap(({ authorities, chains }) => [...authorities, ...chains]);
    if (ends.length === 0) return undefined;
    const firstMs = ends.reduce((first, { expiresMs }) => Math.min(first, expiresMs), Number.POSITIVE_INFINITY);
    return Math.max(0, Math.floor((firstMs - nowMs) / DAY_MS));
  }

  /** 0 when one has expired. @returns undefined when there is none that says when it does. */
  secondsUntilFirstStapleExpires(nowMs: number): number | undefined {
    const ends = this.list().flatMap(({ chains }) => chains.flatMap(({ ocsp }) => ocsp?.expiresMs ?? []));
    if (ends.length === 0) return undefined;
    return Math.max(0, Math.floor((Math.min(...ends) - nowMs) / 1000));
  }
}

function parse({ certificates, validation }: TlsSettings): LoadedCertificates {
  const trusted = validation?.trustedCa ?? null;
  // What the system trusts is no file of the configuration.
  const isGiven = trusted !== null && trusted !== 'system';
  return {
    authorities: isGiven ? [parseOne(trusted, validation!.sources.trustedCa)] : [],
    chains: certificates.map(({ leaf, sources, staple }) => parseOne(leaf, sources.pkcs12 ?? sources.chain, staple)),
  };
}

function parseOne(pem: string, source: TlsSource | null, ocsp: OcspValidity | null = null): LoadedCertificate {
  const certificate = new X509Certificate(pem);
  const names = altNames(certificate);
  return {
    path: source?.kind === 'file' ? source.path : INLINE,
    serialNumber: certificate.serialNumber,
    dnsNames: names.dns,
    uris: names.uri,
    ipAddresses: names.ip.map(canonicalIp),
    validFromMs: certificate.validFromDate.getTime(),
    expiresMs: certificate.validToDate.getTime(),
    ocsp: ocsp && { validFromMs: ocsp.validFromMs, expiresMs: ocsp.expiresMs },
  };
}
