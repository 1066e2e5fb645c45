// What a conversion needs besides its message: where to report, and which clusters exist.

import { nearestName } from '../../base/nearest-name.ts';
import type { AccessLogSettings, DnsResolverSettings, ReportedLogSettings } from '../../snapshot/index.ts';
import type { MessageTypes } from '../proto/generated/messages.ts';
import { quote } from '../source/node.ts';
import type { LogPathLook } from './access-log/log-path.ts';
import type { ConvertedBindConfig } from './bind-config.ts';
import type { DnsCacheNames } from './dns-cache-names.ts';
import type { FaultSink } from './fault-sink.ts';
import type { HttpFilterManifests } from './http-filter.ts';
import type { NetworkFilterManifests } from './network-filter.ts';
import type { SourceContext } from './source-context.ts';
import type { DiscoveredSecrets, StaticSecrets } from './tls/secret-stores.ts';
import type { SourceTrail } from './tls/source-trail.ts';
import type { TracingContext } from './tracing.ts';

/** Of the message that configures an access logger; undefined where there are faults. */
export interface ReportingConversion {
  readonly convert: (message: object, at: string, conversion: Conversion) => ReportedLogSettings['logger'] | undefined;
}

/** Of one that writes lines to where the data plane keeps files and streams; undefined where there are faults. */
export interface LineConversion {
  readonly convertLine: (
    message: object,
    at: string,
    conversion: Conversion,
  ) => Omit<AccessLogSettings, 'filter'> | undefined;
}

export type AccessLoggerConversion = ReportingConversion | LineConversion;

export interface Conversion extends LogPathLook {
  readonly faults: FaultSink;
  readonly clusters: ClusterNames;
  /** The HTTP filters of this build beside the router; none when absent. */
  readonly httpFilters?: HttpFilterManifests | undefined;
  /** The network filters of this build that are extensions; none when absent. */
  readonly networkFilters?: NetworkFilterManifests | undefined;
  /** The access loggers of this build; none when absent. */
  readonly accessLoggers?: Readonly<Record<string, AccessLoggerConversion>> | undefined;
  /** What is converted comes by discovery; it stands in the bootstrap when absent. */
  readonly isDiscovered?: boolean | undefined;
  /** Name of the cluster that this proxy belongs to; empty when absent. */
  readonly localCluster?: string | undefined;
  /** Name of this proxy in it; empty when absent. */
  readonly localNode?: string | undefined;
  /** What is said of it; nothing when absent. */
  readonly nodeMetadata?: Readonly<Record<string, unknown>> | undefined;
  /** Of ratelimit filters that name none; null or absent for none. */
  readonly rateLimitService?: MessageTypes['proxy.config.ratelimit.v3.RateLimitServiceConfig'] | null;
  /** Resolver of clusters without one of their own; that of the system when absent. */
  readonly defaultResolver?: DnsResolverSettings | undefined;
  /** What has been said of DNS caches; nobody compares it when absent. */
  readonly dnsCaches?: DnsCacheNames | undefined;
  /** How sockets of clusters begin that do not say; left to the system when absent. */
  readonly defaultSource?: ConvertedBindConfig | undefined;
  /** Those of the bootstrap; none when absent. */
  readonly secrets?: StaticSecrets | undefined;
  /** Those that have come by discovery; none when absent. */
  readonly discoveredSecrets?: DiscoveredSecrets | undefined;
  /** Notes files and secrets of the TLS context that is being converted; each context has one of its own when absent. */
  readonly trail?: SourceTrail | undefined;
  /** How resources from outside are asked for; nothing but files when absent. */
  readonly sources?: SourceContext | undefined;
  /** Who traces, and by which tracer unless a connection manager says otherwise; absent where nobody traces. */
  readonly tracing?: TracingContext | undefined;
  /** The listener at hand takes what goes out from here. */
  readonly isOutbound?: boolean | undefined;
  /** Variables that format strings may ask for; none when absent. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
}

/** Suggestions given before the rest goes without: each compares a name with that of every cluster. */
const MAX_SUGGESTIONS = 100;

export interface ClusterNamesOptions {
  /** Those whose connections TLS secures; none when absent. */
  readonly secured?: Iterable<string>;
  /** False where discovery may bring others at any time; true when absent. */
  readonly areComplete?: boolean;
  /** Which there are is not known here, and has been looked at before; false when absent. */
  readonly areUnknown?: boolean;
}

/** The clusters that may be named. */
export class ClusterNames {
  readonly #names: ReadonlySet<string>;
  readonly #secured: ReadonlySet<string>;
  readonly #areComplete: boolean;
  readonly #areUnknown: boolean;
  #suggestions = 0;

  constructor(
    names: Iterable<string>,
    { secured = [], areComplete = true, areUnknown = false }: ClusterNamesOptions = {},
  ) {
    this.#names = new Set(names);
    this.#secured = new Set(secured);
    this.#areComplete = areComplete;
    this.#areUnknown = areUnknown;
  }

  /** Reports a reference to a cluster that does not exist, and will not, with the name that was probably meant. */
  checkReference(name: string, at: string, faults: FaultSink): void {
    if (this.#areComplete) this.checkPresence(name, at, faults);
  }

  /** Reports a reference to a cluster that does not exist now. */
  checkPresence(name: string, at: string, faults: FaultSink): void {
    // An empty name has already broken a field rule.
    if (name === '' || this.#areUnknown || this.#names.has(name)) return;
    const near = this.#nearest(name);
    const hint = near === undefined ? '' : `; did you mean ${quote(near)}?`;
    faults.error(at, `cluster ${quote(name)} does not exist${hint}`);
  }

  /** Reports a cluster to which main itself connects, which it does in cleartext only. */
  checkCleartext(name: string, at: string, faults: FaultSink): void {
    if (!this.#secured.has(name)) return;
    faults.error(at, `cluster ${quote(name)} is secured by TLS, which this build speaks for traffic alone`);
  }

  #nearest(name: string): string | undefined {
    this.#suggestions += 1;
    return this.#suggestions > MAX_SUGGESTIONS ? undefined : nearestName(name, [...this.#names]);
  }
}
