// What a filter of the user's own may ask of its stream.

import { WeirError } from '../../../base/errors.ts';
import type { JsonObject } from '../../../base/json.ts';
import {
  type CallAnswer,
  type CallFailure,
  endpointText,
  type FilterCallbacks,
  type LocalReply,
} from '../../../data-plane/index.ts';
import type {
  FilterAnswer,
  FilterCall,
  FilterConfig,
  FilterConnection,
  FilterReply,
  HttpFilterStream,
} from '../../../filter-modules/interface.ts';
import { checkField, checkStatus } from './headers.ts';

const DEFAULT_TIMEOUT_MS = 1000;
const DEFAULT_MAX_ANSWER_BYTES = 1024 * 1024;
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TARGET = /^\/[!-"$-~]*$/;
const WHITE_SPACE = /\s+/g;

/** The filter's part of it. */
export interface StreamOwner {
  /** As http_filters calls it. */
  readonly name: string;
  /** Fields of the answer that is being made. */
  replyHeaders: readonly (readonly [name: string, value: string])[];
  goOnDecoding(): void;
  goOnEncoding(): void;
  chooseRoute(): void;
}

export class ModuleStream implements HttpFilterStream {
  readonly #callbacks: FilterCallbacks;
  readonly #owner: StreamOwner;
  #abort: AbortController | null = null;
  #isOver = false;

  constructor(callbacks: FilterCallbacks, owner: StreamOwner) {
    this.#callbacks = callbacks;
    this.#owner = owner;
  }

  end(): void {
    this.#isOver = true;
    this.#abort?.abort();
  }

  reply(reply: FilterReply): void {
    if (this.#isOver) return;
    const { status, body = '', headers = {}, details = this.#owner.name } = reply;
    checkStatus(status);
    const fields = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)] as const);
    for (const [name, value] of fields) checkField(name, value);
    const bytes = bytesOf(body);
    const answer: LocalReply = {
      status,
      body: bytes.toString(),
      bytes,
      flag: '-',
      details: details.replace(WHITE_SPACE, '_'),
    };
    this.#owner.replyHeaders = fields;
    this.#callbacks.reply(answer);
  }

  continueDecoding(): void {
    if (!this.#isOver) this.#owner.goOnDecoding();
  }

  continueEncoding(): void {
    if (!this.#isOver) this.#owner.goOnEncoding();
  }

  clearRouteCache(): void {
    if (!this.#isOver) this.#owner.chooseRoute();
  }

  call(request: FilterCall): Promise<FilterAnswer> {
    const { cluster, method = 'GET', path = '/', host = cluster, headers = {}, body = '' } = request;
    const { timeoutMs = DEFAULT_TIMEOUT_MS, maxAnswerBytes = DEFAULT_MAX_ANSWER_BYTES } = request;
    const fields = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)] as const);
    const { promise, resolve, reject } = Promise.withResolvers<FilterAnswer>();
    try {
      for (const [name, value] of fields) checkField(name, value);
      checkText('method', method, METHOD);
      checkText('path', path, TARGET);
      checkMost('timeoutMs', timeoutMs);
      checkMost('maxAnswerBytes', maxAnswerBytes);
    } catch (error) {
      reject(error);
      return promise;
    }
    if (this.#isOver) return promise;
    this.#callbacks.call(
      { cluster, method, path, host, fields, body: bytesOf(body), isGrpc: false, timeoutMs, maxAnswerBytes },
      {
        onAnswer: (answer: CallAnswer) =>
          resolve({ status: answer.status, headers: answer.head.entries(), body: answer.body }),
        onCallFailure: (failure: CallFailure) =>
          reject(new WeirError('WEIR_CALL_FAILED', `the call of cluster "${cluster}" failed: ${failure}`)),
      },
    );
    return promise;
  }

  addMetadata(namespace: string, values: FilterConfig): void {
    if (!this.#isOver) this.#callbacks.addMetadata(namespace, structuredClone(values) as JsonObject);
  }

  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      if (this.#isOver) this.#abort.abort();
    }
    return this.#abort.signal;
  }

  get routeConfigs(): readonly FilterConfig[] {
    return this.#callbacks.routeSettings as readonly FilterConfig[];
  }

  get routeCluster(): string {
    return this.#callbacks.routeCluster;
  }

  get clientAddress(): string {
    return this.#callbacks.clientAddress;
  }

  get connection(): FilterConnection {
    const { connectionId, remote, local, requestedServerName, tls } = this.#callbacks.connection;
    return {
      id: connectionId,
      remoteAddress: endpointText(remote) ?? '',
      localAddress: endpointText(local) ?? '',
      serverName: requestedServerName,
      isTls: tls !== null,
    };
  }

  get protocol(): string {
    return this.#callbacks.protocol;
  }

  get isLocalReply(): boolean {
    return this.#callbacks.isLocalReply;
  }
}

function bytesOf(body: string | Uint8Array): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body);
}

function checkText(what: string, text: string, pattern: RegExp): void {
  if (typeof text !== 'string' || !pattern.test(text))
    throw new TypeError(`${what}: ${JSON.stringify(text)} cannot be one`);
}

function checkMost(what: string, value: number): void {
  if (!(value > 0) || !Number.isFinite(value))
    throw new TypeError(`${what}: expected a number above 0, got ${String(value)}`);
}
