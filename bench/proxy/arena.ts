// Starts and stops what one part of the benchmark needs: the upstream and the contenders, each on a reserved port with
// a folder of its own. Everything ends with the scope, also when a part fails.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ReservedPort } from '../../test/support/reserved-port.ts';
import type { Contender, Protocol } from './contender.ts';
import type { PinnedProcess } from './pinned-process.ts';
import type { Entrant } from './rounds.ts';
import { startUpstream } from './upstream.ts';

export class Arena implements AsyncDisposable {
  readonly folder = mkdtempSync(path.join(os.tmpdir(), 'weir-bench-'));
  readonly #processes: PinnedProcess[] = [];
  readonly #ports: ReservedPort[] = [];
  #upstreamPort = 0;

  /** @param host address that it listens on. */
  async startUpstream(cores: string, host = '127.0.0.1'): Promise<void> {
    this.#upstreamPort = await this.reservePort();
    this.#processes.push(await startUpstream(cores, this.#subfolder('upstream'), this.#upstreamPort, host));
  }

  async enter(contender: Contender, protocol: Protocol, cores: string, workers = 1): Promise<Entrant> {
    const port = await this.reservePort();
    const folder = this.#subfolder(contender.name.replaceAll('/', '-'));
    const task = { protocol, port, upstreamPort: this.#upstreamPort, cores, workers, folder };
    const process = await contender.start(task);
    this.#processes.push(process);
    return { name: contender.name, process, port };
  }

  /** Nobody else's while this arena stands. */
  async reservePort(): Promise<number> {
    const reserved = await ReservedPort.take();
    this.#ports.push(reserved);
    return reserved.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop()));
    await Promise.all(this.#ports.map((port) => port[Symbol.asyncDispose]()));
    rmSync(this.folder, { recursive: true, force: true });
  }

  #subfolder(name: string): string {
    const folder = path.join(this.folder, `${this.#processes.length}-${name}`);
    mkdirSync(folder);
    return folder;
  }
}
