// A check by TCP: a connection is enough, or bytes are sent and others have to come back. Main thread.

import type { Socket } from 'node:net';
import type { FaultBoundary } from '../../../base/fault-boundary.ts';
import type { TcpProbeSettings } from '../../../snapshot/index.ts';
import { PayloadMatch } from './payload-match.ts';
import { broken, type Probe, type ProbeOrigin, type ProbeResult, type ProbeTarget, passed } from './probe.ts';
import { type ConnectionListener, ProbeConnection } from './probe-connection.ts';

export class TcpProbe implements Probe, ConnectionListener {
  readonly #settings: TcpProbeSettings;
  readonly #reusesConnection: boolean;
  readonly #connection: ProbeConnection;
  #match = new PayloadMatch([]);
  #onResult: ((result: ProbeResult) => void) | undefined;

  constructor(
    settings: TcpProbeSettings,
    reusesConnection: boolean,
    origin: ProbeOrigin | undefined,
    faults: FaultBoundary,
  ) {
    this.#settings = settings;
    // Without bytes that come back, only a new connection tells anything.
    this.#reusesConnection = reusesConnection && settings.receive.length > 0;
    this.#connection = new ProbeConnection(origin, [], faults, this);
  }

  check(target: ProbeTarget, onResult: (result: ProbeResult) => void): void {
    this.#onResult = onResult;
    this.#match = new PayloadMatch(this.#settings.receive);
    this.#connection.open(target);
  }

  abort(): void {
    this.#onResult = undefined;
    this.#connection.close();
  }

  onOpen(socket: Socket): void {
    if (this.#match.isMatched) this.#finish(passed('connected'));
    else socket.write(this.#settings.send);
  }

  onBytes(bytes: Buffer): void {
    this.#match.read(bytes);
    if (this.#match.isMatched) this.#finish(passed('answered as expected'));
  }

  onLost(reason: string | undefined): void {
    this.#finish(broken(reason ?? 'closed before the answer'));
  }

  #finish(result: ProbeResult): void {
    // Nothing is kept of a connection that has broken.
    if (this.#reusesConnection) this.#connection.keep();
    else this.#connection.close();
    const onResult = this.#onResult;
    this.#onResult = undefined;
    // An aborted check has no connection that could bring it here.
    onResult!(result);
  }
}
