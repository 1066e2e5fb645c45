// A proxy that runs within the process of somebody else. It owns its threads, ports and files, and gives them back; signals, the
// standard streams, the end of the process and what nobody has caught are the host's. Main thread, or any thread that made it.
//
//   starting ──live──▶ running ──close, signal, /quitquitquit──▶ closing ──▶ closed
//       └──────────────── failure, signal ───────────────────────▲

import { type Address, formatAddress } from '../base/address.ts';
import { WeirError } from '../base/errors.ts';
import type { FaultBoundary } from '../base/fault-boundary.ts';
import { SystemCalls } from '../base/system-calls.ts';
import type { Version } from '../base/version.ts';
import type { Server } from '../control-plane/index.ts';
import type { Loggers } from '../log/index.ts';
import { RunningProxy } from '../process/running-proxy.ts';
import { ConfigError } from './errors.ts';
import type { Bootstrap } from './generated/bootstrap.ts';
import { checkGiven } from './given.ts';
import type { Loaded } from './load.ts';
import { EmbeddedStats } from './stats.ts';
import type { AdminAddress, CloseOptions, DrainOptions, Fault, ListenerAddress, WeirProxy } from './types.ts';

export interface EmbeddedProxyParts {
  readonly concurrency: number;
  readonly version: Version;
  readonly loggers: Loggers;
  /** Loads another configuration like the first. @throws ConfigError. */
  readonly load: (config: Bootstrap | string) => Loaded;
}

const GRACE_MS = 10_000;

export class EmbeddedProxy implements WeirProxy {
  readonly #parts: EmbeddedProxyParts;
  readonly #running: RunningProxy;
  readonly #closed = Promise.withResolvers<void>();
  #isClosing = false;
  #warnings: readonly Fault[] = [];
  #stats: EmbeddedStats | undefined;

  /** Starts its threads. */
  constructor(parts: EmbeddedProxyParts) {
    this.#parts = parts;
    const { concurrency, version, loggers } = parts;
    this.#running = new RunningProxy({
      concurrency,
      version,
      log: { loggers },
      // Flags of the host's process are not meant for these threads: loaders of tests, inspectors.
      threadFlags: [],
      systemCalls: () => SystemCalls.open(),
      quit: () => this.faults.run('the end', () => this.close()),
    });
  }

  /** Ends with an order to abort, whenever that comes. */
  closeOn(signal: AbortSignal): void {
    const over = new AbortController();
    signal.addEventListener(
      'abort',
      this.faults.handler('the end', () => this.close()),
      { signal: over.signal },
    );
    const forget = (): void => over.abort();
    this.closed.then(forget, forget);
  }

  /** Resolves when the proxy is live. @throws WeirError; call `close` then as well. */
  async start({ options, result, warnings }: Loaded): Promise<void> {
    this.#warnings = warnings;
    await this.#running.start(options, result);
    if (this.#isClosing) throw stoppedError();
    this.#stats = new EmbeddedStats(this.#server);
  }

  /** Where faults of its own end, and not in the host's process. */
  get faults(): FaultBoundary {
    return this.#running.faults;
  }

  get admin(): AdminAddress | undefined {
    const address = this.#running.adminAddress;
    return address && addressOf(address);
  }

  get listeners(): ReadonlyMap<string, ListenerAddress> {
    // It has stopped accepting, and the ports may be somebody else's soon.
    if (this.#isClosing) return new Map();
    const listeners = [...this.#server.listenerManager.listeners()];
    return new Map(listeners.map(({ name, addresses }) => [name, addressOf(addresses[0]!)]));
  }

  get stats(): EmbeddedStats {
    return this.#stats!;
  }

  get warnings(): readonly Fault[] {
    return this.#warnings;
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  async applyBootstrap(config: Bootstrap | string): Promise<void> {
    if (this.#isClosing) throw stoppedError();
    const { result, warnings } = this.#parts.load(config);
    try {
      await this.#server.updates.apply(result.bootstrap!);
    } catch (error) {
      throw error instanceof WeirError && error.code === 'WEIR_CANNOT_CHANGE' ? cannotChange(error) : error;
    }
    this.#server.countTolerated(result);
    this.#warnings = warnings;
  }

  async drain(options: DrainOptions = {}): Promise<void> {
    checkGiven(options, ['immediately']);
    const { immediately = false } = options;
    if (typeof immediately !== 'boolean') {
      throw new WeirError('WEIR_OPTIONS', `option immediately: expected a boolean, got ${typeof immediately}`);
    }
    const { drainManager, listenerManager } = this.#server;
    if (immediately) drainManager.stop('all');
    else drainManager.start('all', false);
    await Promise.race([listenerManager.whenStopped(), this.closed]);
  }

  async close(options: CloseOptions = {}): Promise<void> {
    checkGiven(options, ['graceMs']);
    const { graceMs = GRACE_MS } = options;
    if (!Number.isFinite(graceMs) || graceMs < 0) {
      const text = `option graceMs: expected a number of milliseconds from 0 on, got ${String(graceMs)}`;
      throw new WeirError('WEIR_OPTIONS', text);
    }
    if (this.#isClosing) return this.closed;
    this.#isClosing = true;
    this.#running.stop(graceMs).then(this.#closed.resolve, this.#closed.reject);
    return this.closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  get #server(): Server {
    return this.#running.server!;
  }
}

function addressOf(address: Address): ListenerAddress {
  if (address.kind === 'pipe') return { address: address.path, port: 0, url: '' };
  return { address: address.ip, port: address.port, url: `http://${formatAddress(address)}` };
}

function cannotChange({ detail }: WeirError): ConfigError {
  const message = 'cannot change while the proxy runs';
  const nowhere = { file: '', line: 0, column: 0 };
  const faults = detail.split('\n').map((path): Fault => ({ severity: 'error', path, message, ...nowhere }));
  return new ConfigError('WEIR_CANNOT_CHANGE', faults);
}

function stoppedError(): WeirError {
  return new WeirError('WEIR_STOPPED', 'the proxy is stopped');
}
