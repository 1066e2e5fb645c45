// What workers tell main, handed to whom it concerns. Main thread.

import { formatAddress, type IpAddress } from '../../base/address.ts';
import type { Logger, Loggers } from '../../log/index.ts';
import type { DynamicStatKey, MainToWorker, WorkerToMain } from '../../snapshot/index.ts';
import type { OpenListeners } from './open-listeners.ts';
import type { SocketQuestions } from './socket-questions.ts';
import type { UpdateConfirmations } from './update-confirmations.ts';
import type { WorkerService } from './worker-service.ts';
import type { WorkerThread } from './worker-thread.ts';

export interface WorkerReportsDependencies {
  /** By index; undefined where one has ended. */
  readonly workers: readonly (WorkerThread | undefined)[];
  /** Undefined before there is work. */
  readonly service: () => WorkerService | undefined;
  readonly listeners: OpenListeners;
  readonly socketQuestions: SocketQuestions;
  readonly confirmations: UpdateConfirmations;
  readonly loggers: Loggers;
  readonly log: Logger;
  /** Behind the updates that are on their way. */
  readonly tell: (worker: WorkerThread, message: MainToWorker) => void;
  readonly onReady: (worker: WorkerThread) => void;
  /** It has done what a shutdown asks for. */
  readonly onStopped: (worker: WorkerThread) => void;
}

export class WorkerReports {
  readonly #deps: WorkerReportsDependencies;

  constructor(deps: WorkerReportsDependencies) {
    this.#deps = deps;
  }

  /** Before it has its work, a worker writes lines at most. */
  receive(worker: WorkerThread, message: WorkerToMain): void {
    switch (message.type) {
      case 'ready':
        this.#deps.onReady(worker);
        break;
      case 'listening':
        this.#deps.listeners.opened(worker, message.listenerId, message.ports);
        break;
      case 'shared-sockets':
        this.#deps.socketQuestions.answered(message.question, worker.index, message.descriptors);
        break;
      case 'listen-failed':
        this.#deps.listeners.failed(worker, message.listenerId, message.reason);
        break;
      case 'dynamic-stat':
        this.#answerDynamicStat(worker, message.key);
        break;
      case 'host-failed':
        this.#service.onHostFailed(message.cluster, message.recordAddress);
        break;
      case 'host-wanted':
        this.#answerWanted(worker, message.cluster, message.address);
        break;
      case 'demand': {
        const { question, demand } = message;
        this.#service.onDemand(demand, (isThere) =>
          this.#deps.tell(worker, { type: 'demand-answered', question, isThere }),
        );
        break;
      }
      case 'news': {
        const { news } = message;
        for (const other of this.#deps.workers)
          if (other && other !== worker) this.#deps.tell(other, { type: 'news', news });
        worker.send({ type: 'news-taken' });
        break;
      }
      case 'outlier':
        this.#service.onHostFailedInRow(message.cluster, message.recordAddress, message.kind);
        break;
      case 'filter-unfit':
        this.#service.onFilterUnfit(message.place, message.reason);
        break;
      case 'applied':
        this.#deps.confirmations.confirmAll(message.generations, worker.index);
        break;
      case 'tap-trace':
        this.#service.onTapTrace(message.to, message.trace, message.dropped);
        worker.send({ type: 'tap-taken', cost: message.cost });
        break;
      case 'tap-dropped':
        this.#service.onTapDropped(message.from, message.count);
        break;
      case 'log':
        this.#logRecordsDropped(worker, message.dropped);
        this.#deps.loggers.emit(message.record, worker.threadId);
        worker.logRelay.taken(message.record);
        break;
      case 'log-dropped':
        this.#logRecordsDropped(worker, message.count);
        break;
      case 'stopped':
        this.#deps.onStopped(worker);
        break;
    }
  }

  #logRecordsDropped(worker: WorkerThread, count: number): void {
    if (count === 0) return;
    this.#deps.loggers.countDropped(count);
    this.#deps.log.warning(`${count} lines of worker ${worker.index} are missing here: the main thread was behind`);
  }

  #answerDynamicStat(worker: WorkerThread, key: DynamicStatKey): void {
    worker.send({ type: 'dynamic-stat', key, cell: this.#service.dynamicStatCell(key) });
  }

  /** A host that can be had reaches the worker as every other, if it is not on its way already. */
  #answerWanted(worker: WorkerThread, cluster: string, address: IpAddress): void {
    const reason = this.#service.onHostWanted(cluster, address);
    if (reason === undefined) return;
    this.#deps.tell(worker, { type: 'host-refused', cluster, address: formatAddress(address), reason });
  }

  get #service(): WorkerService {
    return this.#deps.service()!;
  }
}
