// Starts and stops what one part of the benchmark needs: the upstream and the contenders, each on a free port with a
// folder of its own. Everything ends with the scope, also when a part fails.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type { Contender, Protocol } from './contender.ts';
import type { PinnedProcess } from './pinned-process.ts';
import type { Entrant } from './rounds.ts';
import { startUpstream } from './upstream.ts';

export class Arena implements AsyncDisposable {
  readonly folder = mkdtempSync(path.join(os.tmpdir(), 'weir-bench-'));
  readonly #processes: PinnedProcess[] = [];
  #upstreamPort = 0;

  /** @param host address that it listens on. */
  async startUpstream(cores: string, host = '127.0.0.1'): Promise<void> {
    this.#upstreamPort = await freePort();
    this.#processes.push(await startUpstream(cores, this.#subfolder('upstream'), this.#upstreamPort, host));
  }

  async enter(contender: Contender, protocol: Protocol, cores: string, workers = 1): Promise<Entrant> {
    const port = await freePort();
    const folder = this.#subfolder(contender.name.replaceAll('/', '-'));
    const task = { protocol, port, upstreamPort: this.#upstreamPort, cores, workers, folder };
    const process = await contender.start(task);
    this.#processes.push(process);
    return { name: contender.name, process, port };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.stop()));
    rmSync(this.folder, { recursive: true, force: true });
  }

  #subfolder(name: string): string {
    const folder = path.join(this.folder, `${this.#processes.length}-${name}`);
    mkdirSync(folder);
    return folder;
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
