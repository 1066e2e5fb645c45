// The way of one session to one host: a socket of its own, so that the host's answers find the session.
//
//   CONNECTING ──ready──► OPEN ──closed, host gone──► CLOSED
//       └──no socket────────────────────────────────►┘

import type { RemoteInfo } from 'node:dgram';
import type { IpAddress } from '../../base/address.ts';
import { CLUSTER_STATS } from '../../stats/index.ts';
import { UpstreamConnectionStats } from '../upstream/connection-stats.ts';
import type { Host, RawConnection } from '../upstream/host.ts';
import type { WorkerContext } from '../worker-context.ts';
import { DatagramSocket, type DatagramSocketOwner } from './datagram-socket.ts';

const { upstream_cx_rx_bytes_total, upstream_cx_tx_bytes_total } = CLUSTER_STATS.index;
/** Of datagrams that come before the socket is there, which takes one turn of the event loop. */
const MAX_EARLY = 16;

export interface UdpUpstreamOwner {
  onUpstreamDatagram(bytes: Buffer): void;
  onUpstreamSent(isSent: boolean, length: number): void;
  onUpstreamReceiveError(): void;
  /** The descriptors of the process run short: it is over. Told before that. */
  onUpstreamWithoutRoom(): void;
  /** It carries nothing more. */
  onUpstreamGone(upstream: UdpUpstream): void;
}

export class UdpUpstream implements DatagramSocketOwner, RawConnection {
  readonly host: Host;
  readonly #owner: UdpUpstreamOwner;
  readonly #socket: DatagramSocket;
  /** Sessions are their clients': the descriptors held back are not for them. */
  readonly #descriptorBelow: number;
  readonly #stats: UpstreamConnectionStats;
  /** Null once the socket is there. */
  #early: Buffer[] | null = [];
  #isClosed = false;

  /** The caller has acquired a place for a connection at the host; it is given back here. */
  constructor(context: WorkerContext, host: Host, owner: UdpUpstreamOwner) {
    this.host = host;
    this.#owner = owner;
    this.#stats = new UpstreamConnectionStats(context, host, host.cluster.breaker, context.clock.monotonicMs());
    host.addRawConnection(this);
    this.#descriptorBelow = context.descriptorBudget.acceptBelow;
    const address = host.address as IpAddress;
    this.#socket = new DatagramSocket(address.ip, false, false, this);
    this.#socket.connect(
      address,
      () => this.#onReady(),
      ({ code }) => {
        if (!this.#isClosed && (code === 'EMFILE' || code === 'ENFILE')) this.#owner.onUpstreamWithoutRoom();
        this.#lose();
      },
    );
  }

  send(bytes: Buffer): void {
    if (this.#isClosed) return;
    if (this.#early === null) this.#send(bytes);
    else if (this.#early.length < MAX_EARLY) this.#early.push(bytes);
    else this.#owner.onUpstreamSent(false, bytes.length);
  }

  /** Idempotent; the owner is not told. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#early = null;
    this.#socket.close();
    this.#stats.closed(true);
    this.host.removeRawConnection(this);
  }

  onDatagram(bytes: Buffer, _from: RemoteInfo): void {
    if (this.#isClosed) return;
    this.#stats.count(upstream_cx_rx_bytes_total, bytes.length);
    this.#owner.onUpstreamDatagram(bytes);
  }

  onDatagramError(isSending: boolean): void {
    if (isSending) this.#owner.onUpstreamSent(false, 0);
    else this.#owner.onUpstreamReceiveError();
  }

  onHostFailed(): void {
    this.#lose();
  }

  onHostLeft(): void {
    this.#lose();
  }

  #onReady(): void {
    if ((this.#socket.descriptor ?? 0) >= this.#descriptorBelow) {
      this.#owner.onUpstreamWithoutRoom();
      this.#lose();
      return;
    }
    const early = this.#early ?? [];
    this.#early = null;
    for (const bytes of early) this.#send(bytes);
  }

  #send(bytes: Buffer): void {
    const isSent = this.#socket.send(bytes, null);
    if (isSent) this.#stats.count(upstream_cx_tx_bytes_total, bytes.length);
    this.#owner.onUpstreamSent(isSent, bytes.length);
  }

  #lose(): void {
    if (this.#isClosed) return;
    this.close();
    this.#owner.onUpstreamGone(this);
  }
}
