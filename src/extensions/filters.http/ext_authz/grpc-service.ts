// A service that is asked by gRPC, with all that is known of the request.

import type { CallAnswer, CallRequest } from '../../../data-plane/index.ts';
import { compileByteMatch } from '../../../data-plane/index.ts';
import type { Metadata } from '../../../snapshot/index.ts';
import type { RequestHead } from '../../../wasm/http1.ts';
import { unaryAnswer, unaryCall } from '../grpc/unary-call.ts';
import { encodeCheckRequest } from './check-request.ts';
import { decodeCheckResponse } from './check-response.ts';
import type { Question, Service } from './service.ts';
import type { ExtAuthzSettings, GrpcServiceSettings, NameMatches } from './settings.ts';
import { FAILED, type Verdict } from './verdict.ts';

const PARTIAL_BODY = 'auth-partial-body';
const CLIENT_SERVICE = 'downstream-service-cluster';

export class GrpcService implements Service {
  readonly #settings: GrpcServiceSettings;
  readonly #path: string;
  readonly #tells: (name: string) => boolean;
  readonly #partialBodyName: string;
  readonly #clientServiceNames: readonly string[];

  /** @param spellings of a header of proxies. */
  constructor(
    settings: GrpcServiceSettings,
    { allowedHeaders, disallowedHeaders }: ExtAuthzSettings,
    spellings: (name: string) => readonly string[],
  ) {
    this.#settings = settings;
    this.#path = `/envoy.service.auth.${settings.generation}.Authorization/Check`;
    const allows = allowedHeaders === null ? () => true : anyOf(allowedHeaders);
    const forbids = anyOf(disallowedHeaders);
    this.#tells = (name) => allows(name) && !forbids(name);
    this.#partialBodyName = spellings(PARTIAL_BODY)[0]!;
    this.#clientServiceNames = spellings(CLIENT_SERVICE);
  }

  ask(head: RequestHead, { body, isPartial, isRaw, facts, contexts, maxAnswerBytes }: Question): CallRequest {
    const settings = this.#settings;
    const [method, path, host] = [head.method, head.path(), head.authority()];
    const scheme = head.headerByName('x-forwarded-proto') ?? 'http';
    const line = [
      [':authority', host],
      [':method', method],
      [':path', path],
      [':scheme', scheme],
    ] as const;
    const fields = [...line, ...head.entries().filter(([name]) => name !== 'host')].filter(([name]) =>
      this.#tells(name),
    );
    if (body !== null) fields.push([this.#partialBodyName, String(isPartial)]);
    const message = encodeCheckRequest({
      facts,
      method,
      path,
      host,
      scheme,
      fields,
      hasRawHeaders: settings.hasRawHeaders,
      body,
      isRawBody: isRaw,
      clientService: this.#clientServiceNames.map((name) => head.headerByName(name)).find((value) => value) ?? '',
      includesCertificate: settings.includesCertificate,
      includesTlsSession: settings.includesTlsSession,
      labels: settings.labels,
      context: Object.assign({}, ...contexts.toReversed()),
      metadata: chosen(facts.metadata('DYNAMIC'), settings.metadataNamespaces),
      routeMetadata: chosen(facts.metadata('ROUTE'), settings.routeMetadataNamespaces),
    });
    return unaryCall(this.#settings, this.#path, message, maxAnswerBytes);
  }

  judge(answer: CallAnswer): Verdict {
    const message = unaryAnswer(answer);
    if (message === null) return FAILED;
    try {
      const verdict = decodeCheckResponse(message);
      if (this.#settings.keepsMetadata || verdict.kind === 'error') return verdict;
      return { ...verdict, metadata: null };
    } catch {
      return FAILED;
    }
  }
}

function anyOf(matches: NameMatches): (name: string) => boolean {
  const tests = (matches ?? []).map(compileByteMatch);
  return (name) => tests.some((passes) => passes(name));
}

function chosen(metadata: Metadata | undefined, namespaces: readonly string[]): Metadata {
  const there = namespaces.filter((name) => metadata !== undefined && Object.hasOwn(metadata, name));
  return Object.fromEntries(there.map((name) => [name, metadata![name]!]));
}
