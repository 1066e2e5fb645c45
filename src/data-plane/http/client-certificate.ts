// X-Forwarded-Client-Cert: who the client of a connection has proved to be, for those behind. What a client says of that by
// itself is believed only where the configuration says so.
//
//   By=<URI of our certificate>;Hash=<SHA-256 of the client's>;Cert="…";Chain="…";Subject="…";URI=…;DNS=…

import { createHash } from 'node:crypto';
import type { ClientCertificateSettings, HttpConnectionManagerSettings } from '../../snapshot/index.ts';
import { HEADER_ID, type RequestHead } from '../../wasm/http1.ts';
import { compileMatchTree, type FindMatch } from '../matching/match-tree.ts';
import { REQUEST_INPUTS } from '../matching/request-inputs.ts';
import { type CertificateFacts, chainOf } from '../network/tls/connection-tls.ts';
import { type RequestSender, RouteRequest } from '../route/route-request.ts';
import type { WorkerContext } from '../worker-context.ts';
import { headerText } from './header-text.ts';

const NAME = 'x-forwarded-client-cert';
const FORWARDED_CLIENT_CERT = HEADER_ID[NAME];

/** A request whose origin is known. */
interface ForwardingRequest extends RequestSender {
  readonly isInternal: boolean;
  readonly isFiltered: boolean;
}

/** Of one connection manager. */
export class ClientCertificates {
  readonly #settings: ClientCertificateSettings;
  /** Null where all requests say the same. */
  readonly #find: FindMatch<RouteRequest, ClientCertificateSettings> | null;
  /** Filled anew for each request. */
  readonly #request: RouteRequest;

  constructor(
    { runtime, random, lbKernel: kernel }: Pick<WorkerContext, 'runtime' | 'random' | 'lbKernel'>,
    { clientCertificate, clientCertificateMatcher: tree }: HttpConnectionManagerSettings,
  ) {
    this.#settings = clientCertificate;
    this.#find =
      tree === undefined
        ? null
        : compileMatchTree(
            tree,
            REQUEST_INPUTS,
            { runtime, kernel },
            (settings: ClientCertificateSettings) => settings,
          );
    this.#request = new RouteRequest(random);
  }

  /** @param head as routes read it. */
  forward(head: RequestHead, sender: ForwardingRequest): void {
    const settings = this.#find === null ? this.#settings : this.#settingsOf(head, sender, this.#find);
    if (settings.mode === 'always-forward-only') return;
    const { tls } = sender.downstream;
    const peer = tls?.peer ?? null;
    const isKept = settings.mode === 'forward-only' && peer !== null;
    if (isKept) return;
    const saysDetails = settings.mode === 'append-forward' || settings.mode === 'sanitize-set';
    const before = settings.mode === 'append-forward' ? head.header(FORWARDED_CLIENT_CERT) : undefined;
    if (head.has(FORWARDED_CLIENT_CERT)) head.dropKnown(FORWARDED_CLIENT_CERT);
    if (tls === null || peer === null || !saysDetails) return;
    tls.forwardedDetails ??= new Map();
    let told = tls.forwardedDetails.get(settings);
    if (told === undefined) {
      told = details(peer, tls.own, settings);
      tls.forwardedDetails.set(settings, told);
    }
    head.append(NAME, before ? `${before},${told}` : told);
  }

  #settingsOf(
    head: RequestHead,
    sender: ForwardingRequest,
    find: FindMatch<RouteRequest, ClientCertificateSettings>,
  ): ClientCertificateSettings {
    this.#request.read(head, sender.isInternal, sender.isFiltered, sender);
    return find(this.#request) ?? this.#settings;
  }
}

function details(peer: CertificateFacts, own: CertificateFacts | null, settings: ClientCertificateSettings): string {
  const { certificate, names } = peer;
  const parts = (own?.names.uri ?? []).map((uri) => `By=${unambiguous(uri)}`);
  parts.push(`Hash=${createHash('sha256').update(certificate.raw).digest('hex')}`);
  if (settings.cert) parts.push(`Cert="${encodeURIComponent(certificate.toString())}"`);
  if (settings.chain) parts.push(`Chain="${encodeURIComponent(chainOf(certificate).join(''))}"`);
  if (settings.subject) parts.push(`Subject="${quotable(peer.subject)}"`);
  if (settings.uri) parts.push(...names.uri.map((uri) => `URI=${unambiguous(uri)}`));
  if (settings.dns) parts.push(...names.dns.map((dns) => `DNS=${unambiguous(dns)}`));
  return headerText(parts.join(';'));
}

/** A name that could be taken for several parts is put in quotes. */
function unambiguous(name: string): string {
  return /[,;"]/.test(name) ? `"${quotable(name)}"` : name;
}

function quotable(text: string): string {
  return text.replace(/["\\]/g, '\\$&');
}
