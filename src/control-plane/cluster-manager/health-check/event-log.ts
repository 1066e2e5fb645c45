// What becomes of hosts, as lines of JSON in files. Main thread. Owns the files.

import type { Address } from '../../../base/address.ts';
import type { Clock } from '../../../base/clock.ts';
import { errorMessage } from '../../../base/errors.ts';
import { LogDestination, type Loggers, logTarget } from '../../../log/index.ts';
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

export class HealthEventLogs {
  readonly #clock: Clock;
  readonly #loggers: Loggers;
  readonly #files = new Map<string, LogDestination>();

  constructor(clock: Clock, loggers: Loggers) {
    this.#clock = clock;
    this.#loggers = loggers;
  }

  write(paths: readonly string[], subject: EventSubject, event: CheckEvent): void {
    if (paths.length === 0) return;
    const line = `${JSON.stringify(renderEvent(subject, event, this.#clock.wallMs()))}\n`;
    for (const path of paths) {
      const file = this.#file(path);
      // What an open file cannot take it counts itself.
      if (file === undefined) this.#loggers.countDropped(1);
      else file.write(line);
    }
  }

  /** Goes on in new files, where the old ones were moved away. */
  reopen(): void {
    for (const [path, file] of this.#files) this.#trying(path, () => file.reopen());
  }

  /** Idempotent; what a file takes at once still gets into it. */
  close(): void {
    for (const file of this.#files.values()) file.close('none');
    this.#files.clear();
  }

  /** Undefined when it cannot be opened; the next event tries again. */
  #file(path: string): LogDestination | undefined {
    if (!this.#files.has(path)) this.#trying(path, () => this.#files.set(path, this.#open(path)));
    return this.#files.get(path);
  }

  #open(path: string): LogDestination {
    return LogDestination.open(logTarget(path), {
      clock: this.#clock,
      onDropped: (count) => this.#loggers.countDropped(count),
    });
  }

  #trying(path: string, open: () => void): void {
    try {
      open();
    } catch (error) {
      this.#loggers.get('upstream').error(`cannot write health check events to ${path}: ${errorMessage(error)}`);
    }
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
