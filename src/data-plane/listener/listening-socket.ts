// A socket that accepts on one address of a listener. Other workers listen on the same address and port; the kernel
// spreads connections over them.

import { chmod } from 'node:fs/promises';
import { createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { type Address, formatAddress } from '../../base/address.ts';
import { WeirError } from '../../base/errors.ts';
import { ACCEPTED_SOCKET_OPTIONS, systemPath } from '../network/socket-events.ts';

export interface ListeningSocketOptions {
  readonly address: Address;
  readonly backlog: number;
  readonly reusePort: boolean;
  readonly onAccepted: (socket: Socket) => void;
  /** Accepting has failed, for example for want of descriptors; it goes on. */
  readonly onError: (error: Error) => void;
}

export class ListeningSocket {
  readonly #options: ListeningSocketOptions;
  readonly #server: Server;

  constructor(options: ListeningSocketOptions) {
    this.#options = options;
    this.#server = createServer(ACCEPTED_SOCKET_OPTIONS);
    this.#server.on('connection', options.onAccepted);
  }

  /** @returns the bound port, 0 for a pipe. @throws WeirError WEIR_LISTEN when the address cannot be had. */
  async listen(port: number): Promise<number> {
    const { address } = this.#options;
    await new Promise<void>((resolve, reject) => {
      const fail = (error: Error): void => {
        const text = `cannot listen on ${formatAddress(address)}: ${error.message}`;
        reject(new WeirError('WEIR_LISTEN', text, { cause: error }));
      };
      this.#server.once('error', fail);
      this.#server.listen(this.#listenOptions(port), () => {
        this.#server.off('error', fail);
        resolve();
      });
    });
    this.#server.on('error', this.#options.onError);
    if (address.kind === 'pipe' && address.mode !== 0 && !address.path.startsWith('@'))
      await chmod(address.path, address.mode);
    const bound = this.#server.address();
    return bound === null || typeof bound === 'string' ? 0 : bound.port;
  }

  /** Accepted connections go on. Idempotent. */
  close(): void {
    this.#server.close();
  }

  #listenOptions(port: number): ListenOptions {
    const { address, backlog, reusePort } = this.#options;
    if (address.kind === 'pipe') return { path: systemPath(address.path), backlog };
    return { host: address.ip, port, backlog, reusePort, ipv6Only: address.acceptsIpv4 !== true };
  }
}
