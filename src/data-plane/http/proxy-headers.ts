// The headers by which proxies talk to each other and to operators, under the names that this process writes them.
// On input `x-proxy-*` and `x-envoy-*` are understood always (wasm/http1/known-headers.ts); what is written is fixed
// by the bootstrap's header_prefix. This is the one place that puts such a name together.

import { DEFAULT_HEADER_PREFIX, HEADER_ALIAS_PREFIX, knownSpellings, PreparedLines } from '../../wasm/http1.ts';

export class ProxyHeaders {
  // To upstreams.
  readonly externalAddress: string;
  readonly expectedTimeoutMs: string;
  readonly originalPath: string;
  readonly originalUrl: string;
  readonly isTimeoutRetry: string;
  readonly downstreamServiceCluster: string;
  readonly downstreamServiceNode: string;
  /** Blocks of addresses that the client is in. */
  readonly ipTags: string;
  readonly internalName: string;
  readonly internal: PreparedLines;
  /** Nearly every request is a first attempt. */
  readonly firstAttempt: PreparedLines;
  // To clients, and in part to upstreams.
  readonly attemptCount: string;
  readonly upstreamServiceTime: string;
  readonly overloaded: string;
  readonly localOverloaded: string;
  readonly dropOverload: string;
  /** What has become of a response that could have been compressed. */
  readonly compressionStatus: string;
  readonly rateLimited: string;
  /** What a request does, as its trace calls it; in both directions. */
  readonly decoratorOperation: string;
  // To those who check the health of this proxy.
  readonly degraded: string;
  readonly immediateHealthCheckFail: string;
  readonly healthCheckedCluster: string;

  readonly #prefixes: ReadonlySet<string>;
  readonly #known: ReadonlySet<string>;

  /** @param prefix without its final '-'. */
  constructor(prefix = DEFAULT_HEADER_PREFIX) {
    this.#prefixes = new Set([DEFAULT_HEADER_PREFIX, HEADER_ALIAS_PREFIX, prefix.toLowerCase()]);
    this.#known = new Set(knownSpellings(prefix).map(([name]) => name));
    this.externalAddress = `${prefix}-external-address`;
    this.expectedTimeoutMs = `${prefix}-expected-rq-timeout-ms`;
    this.isTimeoutRetry = `${prefix}-is-timeout-retry`;
    this.originalPath = `${prefix}-original-path`;
    this.originalUrl = `${prefix}-original-url`;
    this.attemptCount = `${prefix}-attempt-count`;
    this.upstreamServiceTime = `${prefix}-upstream-service-time`;
    this.overloaded = `${prefix}-overloaded`;
    this.localOverloaded = `${prefix}-local-overloaded`;
    this.dropOverload = `${prefix}-drop-overload`;
    this.compressionStatus = `${prefix}-compression-status`;
    this.rateLimited = `${prefix}-ratelimited`;
    this.decoratorOperation = `${prefix}-decorator-operation`;
    this.degraded = `${prefix}-degraded`;
    this.immediateHealthCheckFail = `${prefix}-immediate-health-check-fail`;
    this.healthCheckedCluster = `${prefix}-upstream-healthchecked-cluster`;
    this.downstreamServiceCluster = `${prefix}-downstream-service-cluster`;
    this.downstreamServiceNode = `${prefix}-downstream-service-node`;
    this.ipTags = `${prefix}-ip-tags`;
    this.internalName = `${prefix}-internal`;
    this.internal = new PreparedLines([`${this.internalName}: true`]);
    this.firstAttempt = new PreparedLines([`${this.attemptCount}: 1`]);
  }

  /** The codec knows the header by number: who asks for it so reads what the parser found, not what has been edited since. */
  isKnown(name: string): boolean {
    return this.#known.has(name.toLowerCase());
  }

  /** All spellings of a header that the codec does not know by number. @param name behind the prefix. */
  spellings(name: string): readonly string[] {
    return [...this.#prefixes].map((prefix) => `${prefix}-${name}`);
  }
}
