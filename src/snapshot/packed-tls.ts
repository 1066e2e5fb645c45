// TLS settings of a cluster as text can hold them. What they were read from stays with main, which reads it again.

import type { TlsCertificateSettings, TlsIdentity, UpstreamTlsSettings } from './tls.ts';

const NO_SOURCES = { chain: null, key: null, password: null, pkcs12: null, ocspStaple: null };

type PackedIdentity =
  | Extract<TlsIdentity, { kind: 'pem' }>
  | { readonly kind: 'pkcs12'; readonly base64: string; readonly password: string };

interface PackedCertificate extends Pick<TlsCertificateSettings, 'leaf' | 'keyType' | 'serverNames'> {
  readonly identity: PackedIdentity;
}

export interface PackedTls extends Omit<UpstreamTlsSettings, 'certificates'> {
  readonly certificates: readonly PackedCertificate[];
}

export function packTls(settings: UpstreamTlsSettings): PackedTls {
  const { certificates, validation } = settings;
  return {
    ...settings,
    files: [],
    secrets: [],
    certificates: certificates.map(({ leaf, keyType, serverNames, identity }) => ({
      leaf,
      keyType,
      serverNames,
      identity: packIdentity(identity),
    })),
    validation: validation && { ...validation, sources: { trustedCa: null, crl: null } },
  };
}

export function unpackTls(packed: PackedTls): UpstreamTlsSettings {
  const certificates = packed.certificates.map((certificate) => ({
    ...certificate,
    identity: unpackIdentity(certificate.identity),
    sources: NO_SOURCES,
    staple: null,
    mustBeStapled: false,
  }));
  return { ...packed, certificates };
}

function packIdentity(identity: TlsIdentity): PackedIdentity {
  if (identity.kind === 'pem') return identity;
  const { password, bundle } = identity;
  return { kind: 'pkcs12', base64: Buffer.from(bundle).toString('base64'), password };
}

function unpackIdentity(packed: PackedIdentity): TlsIdentity {
  if (packed.kind === 'pem') return packed;
  return { kind: 'pkcs12', bundle: Buffer.from(packed.base64, 'base64'), password: packed.password };
}
