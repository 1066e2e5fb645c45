// Tells a server what load this proxy puts on its upstreams, as that asks for it (LRS). Main thread.
//
//   stream opens ──► a report: the node, and what was counted since the last stream
//   server: which clusters, how often ──► a report after each such interval, until it says otherwise
//   stream is lost ──► what is counted goes on, and waits for the next one
//
// One report is made at a time, piece by piece: there may be very many clusters.

import type { Clock } from '../../base/clock.ts';
import { errorMessage } from '../../base/errors.ts';
import type { FaultBoundary } from '../../base/fault-boundary.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { withinTime } from '../../base/within-time.ts';
import { encodeClusterLoad, encodeReportHead, LOAD_REPORTING_PATH, openReportRequest } from '../../config/exchange.ts';
import type { NodeMessage, ReportRequest, ServiceStreamSettings } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';
import { ServerLink, type ServerLinkDependencies } from '../subscription/management-server/server-link.ts';
import type { LoadLedger, TakenLoad } from './load-ledger.ts';

export interface LoadReporterDependencies extends ServerLinkDependencies {
  readonly clock: Clock;
  readonly faults: FaultBoundary;
  readonly log: Logger;
  readonly ledger: LoadLedger;
  readonly node: NodeMessage;
  readonly counts: { add(name: 'requests' | 'responses' | 'errors' | 'retries'): void };
}

/** As loggers know this file. */
const FILE = 'src/control-plane/load-reporting/load-reporter.ts';

/** A report of all clusters costs time: nobody has it made without a pause. */
const SHORTEST_INTERVAL_MS = 100;
/** Servers of gRPC take messages of 4 MiB unless they say otherwise: longer reports come in several. */
const MESSAGE_BYTES = 2 * 1024 * 1024;

/** What the end of the process waits for the last report. */
const LAST_REPORT_WITHIN_MS = 1000;

export class LoadReporter {
  readonly #settings: ServiceStreamSettings;
  readonly #deps: LoadReporterDependencies;
  readonly #link: ServerLink;
  /** What the server has asked for last, in whatever stream. */
  #request: ReportRequest | undefined;
  #endWait = (): void => {};
  #isWaiting = false;
  #hasSaidNode = false;
  /** For a report that waits until the server has taken what it was sent before; it is not sent in another stream. */
  #wake = (): void => {};
  #isBusy = false;
  /** Of what goes on. */
  #work: Promise<void> = Promise.resolve();
  /** To be done when what goes on has ended. */
  #isReportDue = false;
  #isRequestDue = false;
  #isClosed = false;

  constructor(settings: ServiceStreamSettings, deps: LoadReporterDependencies) {
    this.#settings = settings;
    this.#deps = deps;
    this.#link = new ServerLink(settings.servers, LOAD_REPORTING_PATH[settings.transportGeneration], deps, {
      onOpen: () => this.#opened(),
      onMessage: (bytes) => this.#heard(bytes),
      onLost: (reason) => this.#lost(reason),
      onDrain: () => this.#wake(),
      onRetry: () => this.#deps.counts.add('retries'),
    });
  }

  start(): void {
    if (!this.#isClosed) this.#link.start();
  }

  /** Tells what has been counted last, where a server listens and takes it soon. Nothing is told any more then. Idempotent. */
  async finish(): Promise<void> {
    const listens = !this.#isClosed && this.#link.isOpen && this.#request !== undefined;
    if (listens) await withinTime(this.#deps.clock, LAST_REPORT_WITHIN_MS, this.#reportLast());
    this.close();
  }

  async #reportLast(): Promise<void> {
    this.#isReportDue = true;
    this.#goOn();
    // Its fault has been told of.
    await Promise.allSettled([this.#work]);
    await this.#link.finish();
  }

  /** Nothing is told any more. Idempotent. */
  close(): void {
    this.#isClosed = true;
    this.#endWait();
    this.#link.close();
    this.#wake();
  }

  #opened(): void {
    this.#wake();
    this.#hasSaidNode = false;
    this.#isReportDue = true;
    this.#goOn();
  }

  #heard(bytes: Buffer): void {
    const log = this.#deps.log.ofFile(FILE);
    const { server } = this.#link;
    const former = this.#request?.intervalMs;
    try {
      this.#request = openReportRequest(bytes);
    } catch (error) {
      this.#deps.counts.add('errors');
      log.warning(`load reporting server ${server}: a message is refused: ${errorMessage(error)}`);
      return;
    }
    this.#deps.counts.add('requests');
    const { clusters, intervalMs, isByHost } = this.#request;
    const which = clusters === 'all' ? 'all clusters' : `${clusters.size} clusters`;
    log.debug(
      `load reporting server ${server} wants ${which}${isByHost ? ' with their hosts' : ''} every ${intervalMs} ms`,
    );
    this.#isRequestDue = true;
    // One who says the same again and again gets reports as well.
    if (!this.#isWaiting || intervalMs !== former) this.#waitForNext();
    this.#goOn();
  }

  #lost(reason: string | undefined): void {
    this.#wake();
    this.#endWait();
    this.#isWaiting = false;
    if (reason !== undefined) this.#deps.counts.add('errors');
  }

  #waitForNext(): void {
    this.#endWait();
    if (this.#request === undefined || !this.#link.isOpen) return;
    const intervalMs = Math.max(SHORTEST_INTERVAL_MS, this.#request.intervalMs);
    this.#isWaiting = true;
    this.#endWait = this.#deps.clock.after(intervalMs, () => {
      this.#isWaiting = false;
      this.#isReportDue = true;
      this.#goOn();
    });
  }

  #goOn(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#work = this.#doWhatIsDue();
    this.#deps.faults.run('reporting the load of clusters', () => this.#work);
  }

  async #doWhatIsDue(): Promise<void> {
    try {
      while (this.#isRequestDue || this.#isReportDue) await this.#step();
    } finally {
      this.#isBusy = false;
    }
  }

  async #step(): Promise<void> {
    if (this.#isRequestDue) {
      this.#isRequestDue = false;
      const { clusters, isByHost } = this.#request!;
      await this.#deps.ledger.want(clusters, isByHost);
      return;
    }
    this.#isReportDue = false;
    await this.#report(this.#link.generation);
    this.#waitForNext();
  }

  async #report(generation: number): Promise<void> {
    const { ledger, cluster } = this.#deps;
    const { transportGeneration } = this.#settings;
    const slice = new TimeSlice();
    let message = new ReportMessage();
    let isFirst = true;
    for (const name of ledger.names()) {
      if (generation !== this.#link.generation) break;
      const taken = await ledger.take(name, slice);
      // Some warm, others have gone without a word.
      if (taken === undefined || (taken.sum.isEmpty && cluster(name) === undefined)) continue;
      message.add(taken, encodeClusterLoad(taken, transportGeneration));
      if (message.size < MESSAGE_BYTES) {
        if (slice.isOverNow()) await slice.rest();
        continue;
      }
      await this.#send(message, generation);
      message = new ReportMessage();
      isFirst = false;
      await slice.rest();
    }
    // A server hears at each interval, whatever there is to be said.
    if (isFirst || !message.isEmpty) await this.#send(message, generation);
  }

  /** What cannot be sent any more is told in the next stream. */
  async #send(message: ReportMessage, generation: number): Promise<void> {
    while (generation === this.#link.generation && this.#link.isBackedUp) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (generation !== this.#link.generation) {
      for (const taken of message.taken) this.#deps.ledger.giveBack(taken);
      return;
    }
    const saysNode = !this.#hasSaidNode || !this.#settings.nodeOnFirstMessageOnly;
    this.#hasSaidNode = true;
    this.#link.send(Buffer.concat([...(saysNode ? [encodeReportHead(this.#deps.node)] : []), ...message.parts]));
    this.#deps.counts.add('responses');
  }
}

class ReportMessage {
  readonly taken: TakenLoad[] = [];
  readonly parts: Uint8Array[] = [];
  size = 0;

  get isEmpty(): boolean {
    return this.taken.length === 0;
  }

  add(taken: TakenLoad, part: Uint8Array): void {
    this.taken.push(taken);
    this.parts.push(part);
    this.size += part.length;
  }
}
