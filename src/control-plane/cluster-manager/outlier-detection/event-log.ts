// Ejections of hosts and their ends, as lines of JSON in a file. Main thread. Owns the file.

import { type Address, formatAddress } from '../../../base/address.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Loggers } from '../../../log/index.ts';
import type { OutlierKind } from '../../../snapshot/index.ts';
import { EventFiles } from '../event-files.ts';
import type { Rates } from './success-rate.ts';

/** Whom an event is about. */
export interface OutlierSubject {
  readonly clusterName: string;
  readonly address: Address;
  /** How often the host has been ejected, this time included. */
  readonly ejections: number;
  /** Since the last ejection, or the end of the last one; undefined without. */
  readonly sinceLastMs: number | undefined;
}

export type OutlierEvent =
  | {
      readonly kind: 'eject';
      readonly type: OutlierKind;
      /** It has had consequences. */
      readonly isEnforced: boolean;
      /** Of the host, in percent. */
      readonly rate: number;
      readonly rates: Rates;
    }
  | { readonly kind: 'uneject' };

const TYPES: Readonly<Record<OutlierKind, string>> = {
  'consecutive-5xx': 'CONSECUTIVE_5XX',
  'consecutive-gateway-failure': 'CONSECUTIVE_GATEWAY_FAILURE',
  'success-rate': 'SUCCESS_RATE',
  'consecutive-local-origin-failure': 'CONSECUTIVE_LOCAL_ORIGIN_FAILURE',
  'local-origin-success-rate': 'SUCCESS_RATE_LOCAL_ORIGIN',
  'failure-percentage': 'FAILURE_PERCENTAGE',
  'local-origin-failure-percentage': 'FAILURE_PERCENTAGE_LOCAL_ORIGIN',
};

export class OutlierEventLog {
  readonly #clock: Clock;
  readonly #files: EventFiles;
  readonly #paths: readonly string[];

  /** @param path empty for no file. */
  constructor(clock: Clock, loggers: Loggers, path: string) {
    this.#clock = clock;
    this.#files = new EventFiles(clock, loggers, 'ejections of outliers');
    this.#paths = path === '' ? [] : [path];
  }

  write(subject: OutlierSubject, event: OutlierEvent): void {
    if (this.#paths.length === 0) return;
    this.#files.write(this.#paths, JSON.stringify(renderOutlierEvent(subject, event, this.#clock.wallMs())));
  }

  /** Goes on in a new file, where the old one was moved away. */
  reopen(): void {
    this.#files.reopen();
  }

  /** Idempotent; what the file takes at once still gets into it. */
  close(): void {
    this.#files.close();
  }
}

/** In the order of the fields' numbers, with fields at their defaults; the end of an ejection has the first type. */
export function renderOutlierEvent(subject: OutlierSubject, event: OutlierEvent, nowMs: number): object {
  const { clusterName, address, ejections, sinceLastMs } = subject;
  const isEjection = event.kind === 'eject';
  return {
    type: TYPES[isEjection ? event.type : 'consecutive-5xx'],
    timestamp: new Date(nowMs).toISOString(),
    // A 64-bit number, which JSON has as text.
    ...(sinceLastMs === undefined ? {} : { secs_since_last_action: String(Math.floor(sinceLastMs / 1000)) }),
    cluster_name: clusterName,
    upstream_url: formatAddress(address),
    action: isEjection ? 'EJECT' : 'UNEJECT',
    num_ejections: ejections,
    enforced: isEjection && event.isEnforced,
    ...(isEjection ? renderReason(event) : {}),
  };
}

function renderReason({ type, rate, rates }: Extract<OutlierEvent, { kind: 'eject' }>): object {
  switch (type) {
    case 'success-rate':
    case 'local-origin-success-rate':
      return {
        eject_success_rate_event: {
          host_success_rate: whole(rate),
          cluster_average_success_rate: whole(rates.average),
          cluster_success_rate_ejection_threshold: whole(rates.threshold),
        },
      };
    case 'failure-percentage':
    case 'local-origin-failure-percentage':
      return { eject_failure_percentage_event: { host_success_rate: whole(rate) } };
    default:
      return { eject_consecutive_event: {} };
  }
}

function whole(percent: number): number {
  return Math.max(0, Math.trunc(percent));
}
