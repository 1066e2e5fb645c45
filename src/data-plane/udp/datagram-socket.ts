// A UDP socket of Node's, as listeners and sessions use it: addresses are literals, and what waits to be sent is bounded.

import { createSocket, type RemoteInfo, type Socket, type SocketOptions } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { IpAddress } from '../../base/address.ts';
import { descriptorOfDatagrams } from '../../base/descriptor-budget.ts';

/** Of datagrams that the kernel has not taken; what comes beyond is dropped, as the network would. */
const MAX_QUEUED_BYTES = 1024 * 1024;

type Lookup = NonNullable<SocketOptions['lookup']>;

/** Nothing is looked up: that would cost a turn of the event loop, or a thread, for each datagram. */
const asWritten: Lookup = (address, _options, found) => found(null, address, isIPv6(address) ? 6 : 4);

export interface DatagramSocketOwner {
  /** @param bytes the receiver's to keep. */
  onDatagram(bytes: Buffer, from: RemoteInfo): void;
  /** Sending or receiving has failed; the socket goes on. */
  onDatagramError(isSending: boolean): void;
}

export class DatagramSocket {
  readonly #socket: Socket;
  readonly #owner: DatagramSocketOwner;
  #isClosed = false;

  constructor(ip: string, acceptsIpv4: boolean, reusePort: boolean, owner: DatagramSocketOwner) {
    const isV6 = isIPv6(ip);
    this.#owner = owner;
    this.#socket = createSocket({
      type: isV6 ? 'udp6' : 'udp4',
      reusePort,
      ipv6Only: isV6 && !acceptsIpv4,
      lookup: asWritten,
    });
    this.#socket.on('message', (bytes: Buffer, from: RemoteInfo) => this.#owner.onDatagram(bytes, from));
  }

  /** @returns the bound port. @throws what the system says. */
  bind(ip: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#socket.once('error', reject);
      this.#socket.bind({ address: ip, port, exclusive: true }, () => {
        this.#socket.off('error', reject);
        this.#watchErrors();
        resolve(this.#socket.address().port);
      });
    });
  }

  /** Undefined while there is none, or it cannot be told. */
  get descriptor(): number | undefined {
    const descriptor = descriptorOfDatagrams(this.#socket);
    return descriptor === -1 ? undefined : descriptor;
  }

  /** Sends to, and hears of, this address alone. @param onReady what is said before goes nowhere. @param onFailed there is no such socket. */
  connect({ ip, port }: IpAddress, onReady: () => void, onFailed: (error: NodeJS.ErrnoException) => void): void {
    this.#socket.once('error', onFailed);
    this.#socket.connect(port, ip, () => {
      this.#socket.off('error', onFailed);
      if (this.#isClosed) return;
      this.#watchErrors();
      onReady();
    });
  }

  /** @param to null for the address that it is connected to. @returns false when it is dropped: too much waits. */
  send(bytes: Buffer, to: { readonly address: string; readonly port: number } | null): boolean {
    if (this.#isClosed || this.#socket.getSendQueueSize() > MAX_QUEUED_BYTES) return false;
    if (to === null) this.#socket.send(bytes);
    else this.#socket.send(bytes, to.port, to.address);
    return true;
  }

  /** Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // What fails from now on is of no interest, but must not go unheard.
    this.#socket.on('error', () => {});
    this.#socket.close();
  }

  #watchErrors(): void {
    this.#socket.on('error', (error: NodeJS.ErrnoException) => {
      if (!this.#isClosed) this.#owner.onDatagramError(error.syscall === 'send');
    });
  }
}
