// The secure contexts of one filter chain: which certificates a client is shown depends on the server it names.
//
// OpenSSL presents one certificate of each key type, whichever the client can verify: the first ones. Certificates beyond the
// first of their type get contexts of their own, found by the names that only they are for. Node takes one certificate alone
// out of such a context. A client that names a server nobody is gets the first ones.

import { constants, createHash, X509Certificate } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import type { DownstreamTlsSettings, TlsCertificateSettings } from '../../../snapshot/index.ts';
import { secureContextOptions } from '../../../tls/secure-context.ts';
import { withTicketKeys } from './ticket-keys.ts';

/** OpenSSL counts in 32 bits. */
const MAX_SESSION_SECONDS = 2 ** 31 - 1;

export class ServerContexts {
  readonly first: SecureContext;
  /** Of certificates that are presented alone, by their DER as text; null where none has to be thought of. */
  readonly stapled: ReadonlyMap<string, TlsCertificateSettings> | null;
  /** Null where one context serves every name. */
  readonly #byName: ReadonlyMap<string, SecureContext> | null;

  constructor(settings: DownstreamTlsSettings, ticketKeys: readonly Uint8Array[] | null) {
    const { certificates } = settings;
    const context = (own: readonly TlsCertificateSettings[]): SecureContext =>
      withTicketKeys(ticketKeys, {
        ...secureContextOptions(settings, own),
        // A client is judged once: it must not change its certificate behind that.
        secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
        honorCipherOrder: !settings.prefersClientCiphers,
        sessionIdContext: sessionIdContext(settings),
        sessionTimeout: Math.min(MAX_SESSION_SECONDS, Math.floor(settings.sessionTimeoutMs / 1000)),
      });
    const leading = firstOfTypes(certificates);
    this.first = context(leading);
    const alone = leading.length === 1 ? certificates : certificates.filter((own) => !leading.includes(own));
    const isOfInterest = alone.some(({ staple, mustBeStapled }) => staple !== null || mustBeStapled);
    this.stapled = isOfInterest ? new Map(alone.map((own) => [derText(new X509Certificate(own.leaf).raw), own])) : null;
    this.#byName = leading.length === certificates.length ? null : contextsByName(certificates, leading, context);
  }

  /** One context serves every name. */
  get isSimple(): boolean {
    return this.#byName === null;
  }

  /** @param serverName as the client has named it. @returns undefined for the first. */
  find(serverName: string): SecureContext | undefined {
    const name = serverName.toLowerCase();
    const dot = name.indexOf('.');
    return this.#byName?.get(name) ?? this.#byName?.get(`*${name.slice(dot)}`);
  }
}

/** What OCSP answers are found by. */
export function derText(der: Buffer): string {
  return der.toString('latin1');
}

/** Of the names that only certificates beyond the leading ones are for. */
function contextsByName(
  certificates: readonly TlsCertificateSettings[],
  leading: readonly TlsCertificateSettings[],
  context: (own: readonly TlsCertificateSettings[]) => SecureContext,
): ReadonlyMap<string, SecureContext> {
  const byName = new Map<string, SecureContext>();
  const known = new Set(leading.flatMap(({ serverNames }) => serverNames));
  for (const certificate of certificates) {
    if (leading.includes(certificate)) continue;
    const made = context([certificate]);
    for (const name of certificate.serverNames) if (!known.has(name) && !byName.has(name)) byName.set(name, made);
  }
  return byName;
}

function firstOfTypes(certificates: readonly TlsCertificateSettings[]): readonly TlsCertificateSettings[] {
  return certificates.filter(
    ({ keyType }, index) => certificates.findIndex((other) => other.keyType === keyType) === index,
  );
}

/** A session goes on only where its client would have been judged alike. */
function sessionIdContext({ validation, requiresClientCertificate }: DownstreamTlsSettings): string {
  const judged = JSON.stringify([requiresClientCertificate, validation && { ...validation, sources: null }]);
  return createHash('sha256').update(judged).digest('hex').slice(0, 32);
}
