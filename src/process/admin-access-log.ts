// The access logs of the admin interface: entries by the formats and filters that workers have for theirs, written by main.
// What only a proxied request has (an upstream, a route) is missing in them.

import type { AccessLogWriter, EndedRequest } from '../admin/index.ts';
import type { Clock } from '../base/clock.ts';
import { SYSTEM_RANDOM } from '../base/random.ts';
import type { RuntimeValues } from '../base/runtime.ts';
import type { AdminSettings } from '../config/index.ts';
import { compileFilter, compileLine, type FormatFacts, flagBit, NO_FLAGS, StreamFacts } from '../data-plane/index.ts';
import { LogDestination, logTarget } from '../log/index.ts';

export interface AdminAccessLogOptions {
  readonly clock: Clock;
  readonly runtime: RuntimeValues;
  /** Lines have found no room. */
  readonly onDropped: (count: number) => void;
}

interface Entry {
  readonly passes: ((facts: FormatFacts) => boolean) | null;
  readonly line: (facts: FormatFacts) => string;
  readonly destination: LogDestination;
}

const PATHS = { stdout: '/dev/stdout', stderr: '/dev/stderr' };
/** What the peers call the origin of such answers. */
const DETAILS = 'admin_filter_response';
const NO_INGRESS = { chainName: '', chainMetadata: undefined, listenerMetadata: undefined };

export class AdminAccessLog implements AccessLogWriter {
  readonly #clock: Clock;
  readonly #entries: readonly Entry[];
  /** By path: logs of one file share it. */
  readonly #destinations = new Map<string, LogDestination>();

  /** @throws WeirError WEIR_LOG_FILE when a file cannot be opened. */
  constructor(settings: AdminSettings['accessLogs'], options: AdminAccessLogOptions) {
    this.#clock = options.clock;
    this.#entries = settings.map(({ destination, format, filter }) => ({
      passes: filter === null ? null : compileFilter(filter, SYSTEM_RANDOM, options.runtime),
      line: compileLine(format),
      destination: this.#open(destination.kind === 'file' ? destination.path : PATHS[destination.kind], options),
    }));
  }

  write(request: EndedRequest): void {
    const facts = this.#factsOf(request);
    for (const { passes, line, destination } of this.#entries) {
      // Lines are text of a character a byte.
      if (passes === null || passes(facts)) destination.write(Buffer.from(line(facts), 'latin1').toString());
    }
  }

  /** @throws WeirError WEIR_LOG_FILE when one cannot be opened; the others are. */
  reopen(): void {
    const failures: unknown[] = [];
    for (const destination of this.#destinations.values()) {
      try {
        destination.reopen();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  close(): void {
    for (const destination of this.#destinations.values()) destination.close();
  }

  #open(path: string, { clock, onDropped }: AdminAccessLogOptions): LogDestination {
    const known = this.#destinations.get(path) ?? LogDestination.open(logTarget(path), { clock, onDropped });
    this.#destinations.set(path, known);
    return known;
  }

  #factsOf({ startMs, endMs, protocol, requestHead, responseHead, ...request }: EndedRequest): StreamFacts {
    const { remote, local, connectionId } = request;
    const downstream = {
      connectionId,
      remote,
      directRemote: remote,
      local,
      directLocal: local,
      originalDestination: null,
      requestedServerName: '',
      startMs,
      securedMs: -1,
      transportProtocol: 'raw_buffer' as const,
      applicationProtocols: [],
      tls: null,
      metadata: undefined,
      state: () => undefined,
      transportFailure: '',
    };
    const facts = new StreamFacts(this.#clock, startMs, downstream, 'DownstreamEnd', NO_INGRESS);
    facts.protocol = protocol;
    facts.requestHead = requestHead;
    facts.responseHead = responseHead;
    facts.status = request.status;
    facts.details = DETAILS;
    facts.flags = request.isCutOff ? flagBit('DC') : NO_FLAGS;
    facts.bytesReceived = request.received;
    facts.bytesSent = request.sent;
    facts.endMs = endMs;
    return facts;
  }
}
