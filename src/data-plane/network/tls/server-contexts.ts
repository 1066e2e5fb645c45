// The secure contexts of one filter chain: which certificates a client is shown depends on the server it names.
//
// OpenSSL presents one certificate of each key type, whichever the client can verify: the first ones. Certificates beyond the
// first of their type get contexts of their own, found by the names that only they are for. A client that names a server nobody is
// gets the first ones.
//
// Node can staple an OCSP response to a certificate that is presented alone, and does not tell which one OpenSSL has chosen among
// several. So where it matters there is a context for each key type, too, for whoever knows the client's choice beforehand.

import { constants, createHash, X509Certificate } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import type { DownstreamTlsSettings, TlsCertificateSettings } from '../../../snapshot/index.ts';
import { secureContextOptions } from '../../../tls/secure-context.ts';
import { withTicketKeys } from './ticket-keys.ts';

/** OpenSSL counts in 32 bits. */
const MAX_SESSION_SECONDS = 2 ** 31 - 1;

/** Certificates of different key types of which a client is shown one. */
export interface CertificateChoice {
  readonly certificates: readonly TlsCertificateSettings[];
  readonly context: SecureContext;
  /** The same of one certificate each, by key type; null where that is nobody's concern. */
  readonly alone: ReadonlyMap<string, SecureContext> | null;
}

export class ServerContexts {
  readonly first: CertificateChoice;
  /**
   * Certificates that a client may be shown an OCSP response of, or must, by their DER as text; null where none has to be
   * thought of.
   */
  readonly stapled: ReadonlyMap<string, TlsCertificateSettings> | null;
  /** Those of them that are never one of several; they alone can be told from a context of several. */
  readonly stapledAlone: ReadonlyMap<string, TlsCertificateSettings> | null;
  /** Key types that there are contexts for; empty where nobody has to choose. */
  readonly keyTypes: readonly string[];
  /** Null where one choice serves every name. */
  readonly #byName: ReadonlyMap<string, CertificateChoice> | null;

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
    const isOfInterest = ({ staple, mustBeStapled }: TlsCertificateSettings): boolean =>
      staple !== null || mustBeStapled;
    const choice = (own: readonly TlsCertificateSettings[]): CertificateChoice => ({
      certificates: own,
      context: context(own),
      alone:
        own.length > 1 && own.some(isOfInterest)
          ? new Map(own.map((certificate) => [certificate.keyType, context([certificate])]))
          : null,
    });
    const leading = firstOfTypes(certificates);
    this.first = choice(leading);
    this.#byName = leading.length === certificates.length ? null : choicesByName(certificates, leading, choice);
    const several = [this.first, ...(this.#byName?.values() ?? [])].filter((each) => each.certificates.length > 1);
    const byDer = (own: readonly TlsCertificateSettings[]): ReadonlyMap<string, TlsCertificateSettings> =>
      new Map(own.map((each) => [derText(new X509Certificate(each.leaf).raw), each]));
    const hasStaples = certificates.some(isOfInterest);
    this.stapled = hasStaples ? byDer(certificates) : null;
    this.stapledAlone = hasStaples
      ? byDer(certificates.filter((own) => !several.some((each) => each.certificates.includes(own))))
      : null;
    this.keyTypes = [...new Set(several.flatMap(({ alone }) => [...(alone?.keys() ?? [])]))];
  }

  /** One choice serves every name. */
  get isSimple(): boolean {
    return this.#byName === null;
  }

  /** @param serverName as the client has named it. @returns undefined for the first. */
  find(serverName: string): CertificateChoice | undefined {
    const name = serverName.toLowerCase();
    const dot = name.indexOf('.');
    return this.#byName?.get(name) ?? this.#byName?.get(`*${name.slice(dot)}`);
  }
}

/** What OCSP answers are found by. */
export function derText(der: Buffer): string {
  return der.toString('latin1');
}

/** The context for a client that verifies a key type. @param keyType null where that is not known. */
export function contextFor({ alone, context }: CertificateChoice, keyType: string | null): SecureContext {
  return (keyType === null ? undefined : alone?.get(keyType)) ?? context;
}

/** Of the names that only certificates beyond the leading ones are for. */
function choicesByName(
  certificates: readonly TlsCertificateSettings[],
  leading: readonly TlsCertificateSettings[],
  choice: (own: readonly TlsCertificateSettings[]) => CertificateChoice,
): ReadonlyMap<string, CertificateChoice> {
  const known = new Set(leading.flatMap(({ serverNames }) => serverNames));
  const others = certificates.filter((own) => !leading.includes(own));
  const names = new Set(others.flatMap(({ serverNames }) => serverNames).filter((name) => !known.has(name)));
  // Names of the same certificates share their contexts.
  const made = new Map<string, CertificateChoice>();
  const byName = new Map<string, CertificateChoice>();
  for (const name of names) {
    const own = firstOfTypes(others.filter(({ serverNames }) => serverNames.includes(name)));
    const key = own.map((certificate) => others.indexOf(certificate)).join();
    const shared = made.get(key) ?? choice(own);
    made.set(key, shared);
    byName.set(name, shared);
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
