// What becomes of hosts, as lines of JSON in files. Main thread. Owns the files.

import { createWriteStream, type WriteStream } from 'node:fs';
import type { Address } from '../../../base/address.ts';
import type { Clock } from '../../../base/clock.ts';
import { errorMessage } from '../../../base/errors.ts';
import type { Logger } from '../../../log/index.ts';
import type { Locality, ProbeSettings } from '../../../snapshot/index.ts';
import type { CheckEvent, FailureType } from './check-state.ts';

/** Whom an event is about. */
export interface EventSubject {
  readonly clusterName: string;
  readonly address: Address;
  readonly locality: Locality;
  readonly checkerKind: ProbeSettings['kind'];
}

const CHECKER_TYPES: Readonly<Record<ProbeSettings['kind'], string>> = { http: 'HTTP', tcp: 'TCP' };
const FAILURE_TYPES: Readonly<Record<FailureType, string>> = {
  active: 'ACTIVE',
  passive: 'PASSIVE',
  network: 'NETWORK',
  'network-timeout': 'NETWORK_TIMEOUT',
};
/** Lines that a file has not taken yet; more are left out. */
const MAX_WAITING_BYTES = 1024 * 1024;

export class HealthEventLogs {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #files = new Map<string, WriteStream>();

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  write(paths: readonly string[], subject: EventSubject, event: CheckEvent): void {
    if (paths.length === 0) return;
    const line = `${JSON.stringify(renderEvent(subject, event, this.#clock.wallMs()))}\n`;
    for (const path of paths) {
      const file = this.#file(path);
      if (file.writableLength < MAX_WAITING_BYTES) file.write(line);
    }
  }

  /** Goes on in new files, where the old ones were moved away. */
  reopen(): void {
    this.close();
  }

  /** Idempotent; what was written before still gets into the files. */
  close(): void {
    for (const file of this.#files.values()) file.end();
    this.#files.clear();
  }

  #file(path: string): WriteStream {
    const known = this.#files.get(path);
    if (known !== undefined) return known;
    const file = createWriteStream(path, { flags: 'a' });
    file.on('error', (error) => {
      this.#log.error(`cannot write health check events to ${path}: ${errorMessage(error)}`);
      // The next event tries again.
      if (this.#files.get(path) === file) this.#files.delete(path);
    });
    this.#files.set(path, file);
    return file;
  }
}

/** In the order of the fields' numbers, with fields at their defaults. */
export function renderEvent(subject: EventSubject, event: CheckEvent, nowMs: number): object {
  const { clusterName, address, locality, checkerKind } = subject;
  const timestamp = { timestamp: new Date(nowMs).toISOString() };
  const { before = {}, after = {} } = renderKind(event);
  const { region, zone, subZone } = locality;
  return {
    health_checker_type: CHECKER_TYPES[checkerKind],
    host: renderAddress(address),
    cluster_name: clusterName,
    ...before,
    ...timestamp,
    ...after,
    metadata: { filter_metadata: {}, typed_filter_metadata: {} },
    locality: { region, zone, sub_zone: subZone },
    ...(event.kind === 'success' ? { successful_health_check_event: {} } : {}),
  };
}

/** The older kinds of events stand before the time, the newer ones behind it. */
function renderKind(event: CheckEvent): { readonly before?: object; readonly after?: object } {
  switch (event.kind) {
    case 'eject-unhealthy':
      return { before: { eject_unhealthy_event: { failure_type: FAILURE_TYPES[event.failureType] } } };
    case 'add-healthy':
      return { before: { add_healthy_event: { first_check: event.isFirstCheck } } };
    case 'failure': {
      const { failureType, isFirstCheck } = event;
      const failure = { failure_type: FAILURE_TYPES[failureType], first_check: isFirstCheck };
      return { after: { health_check_failure_event: failure } };
    }
    case 'degraded':
      return { after: { degraded_healthy_host: {} } };
    case 'no-longer-degraded':
      return { after: { no_longer_degraded_host: {} } };
    case 'success':
      return {};
  }
}

function renderAddress(address: Address): object {
  if (address.kind === 'pipe') return { pipe: { path: address.path, mode: address.mode } };
  const { ip, port } = address;
  return {
    socket_address: { protocol: 'TCP', address: ip, port_value: port, resolver_name: '', ipv4_compat: false },
  };
}
