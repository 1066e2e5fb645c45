// What becomes of checked hosts, as lines of JSON in files. Main thread. Owns the files.

import type { Address } from '../../../base/address.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Loggers } from '../../../log/index.ts';
import type { Locality, ProbeSettings } from '../../../snapshot/index.ts';
import { EventFiles } from '../event-files.ts';
import type { CheckEvent, FailureType } from './check-state.ts';

/** Whom an event is about. */
export interface EventSubject {
  readonly clusterName: string;
  readonly address: Address;
  readonly locality: Locality;
  readonly checkerKind: ProbeSettings['kind'];
}

const CHECKER_TYPES: Readonly<Record<ProbeSettings['kind'], string>> = {
  http: 'HTTP',
  tcp: 'TCP',
  grpc: 'GRPC',
  redis: 'REDIS',
};
const FAILURE_TYPES: Readonly<Record<FailureType, string>> = {
  active: 'ACTIVE',
  passive: 'PASSIVE',
  network: 'NETWORK',
  'network-timeout': 'NETWORK_TIMEOUT',
};

export class HealthEventLogs {
  readonly #clock: Clock;
  readonly #files: EventFiles;

  constructor(clock: Clock, loggers: Loggers) {
    this.#clock = clock;
    this.#files = new EventFiles(clock, loggers, 'health check events');
  }

  /** As EventFiles.hold. */
  hold(paths: readonly string[]): () => void {
    return this.#files.hold(paths);
  }

  write(paths: readonly string[], subject: EventSubject, event: CheckEvent): void {
    if (paths.length === 0) return;
    this.#files.write(paths, JSON.stringify(renderEvent(subject, event, this.#clock.wallMs())));
  }

  /** Goes on in new files, where the old ones were moved away. */
  reopen(): void {
    this.#files.reopen();
  }

  /** Idempotent; what a file takes at once still gets into it. */
  close(): void {
    this.#files.close();
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
