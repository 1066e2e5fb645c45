// Tells a service manager how the service is, as systemd wants to hear it (sd_notify): a datagram to the socket of NOTIFY_SOCKET.

import { systemPath } from '../base/address.ts';
import { systemMonotonicUs } from '../base/clock.ts';
import type { SystemCalls } from '../base/system-calls.ts';

export class ServiceManager {
  readonly #path: string | undefined;
  readonly #calls: SystemCalls | undefined;

  /** @param path of its socket; undefined where there is none. */
  constructor(path: string | undefined, calls: SystemCalls | undefined) {
    this.#path = path;
    this.#calls = calls;
  }

  /** @param how what the manager shows as the status of the service: nothing else tells it that a reload has failed. */
  ready(how: string): void {
    this.#tell(`READY=1\nSTATUS=${how}`);
  }

  reloading(): void {
    // The manager has the same clock, and takes only a ready that comes behind this.
    this.#tell(`RELOADING=1\nMONOTONIC_USEC=${systemMonotonicUs()}`);
  }

  stopping(): void {
    this.#tell('STOPPING=1');
  }

  #tell(text: string): void {
    if (this.#path === undefined || this.#calls === undefined) return;
    const socket = this.#calls.openDatagramSocket(systemPath(this.#path));
    if (socket < 0) return;
    this.#calls.sendNow(socket, Buffer.from(text));
    this.#calls.close(socket);
  }
}
