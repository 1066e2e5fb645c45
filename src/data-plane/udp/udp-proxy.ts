// The UDP proxy of one listener in one worker: its sockets, and the sessions of their clients. The kernel sends all datagrams
// of a client to the same worker as long as the set of workers stays (docs/decisions/0069-datagrams-stay-with-their-worker.md).

import type { RemoteInfo } from 'node:dgram';
import { type Address, formatAddress, type IpAddress } from '../../base/address.ts';
import { errorMessage, WeirError } from '../../base/errors.ts';
import type { ListenerSnapshot, UdpProxySettings } from '../../snapshot/index.ts';
import { UDP_LISTENER_STATS, UDP_PROXY_STATS } from '../../stats/index.ts';
import { AccessLog } from '../access-log/access-log.ts';
import type { DatagramService } from '../listener/datagram-service.ts';
import { compileMatchTree, type FindMatch } from '../matching/match-tree.ts';
import { plainAddress } from '../network/peer-address.ts';
import type { Overload } from '../overload.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { ClusterMap } from '../upstream/cluster-map.ts';
import { type PickContext, RequestHash } from '../upstream/load-balancer/pick-context.ts';
import type { WorkerContext } from '../worker-context.ts';
import { DATAGRAM_INPUTS, type MetDatagram } from './datagram-inputs.ts';
import { DatagramSocket } from './datagram-socket.ts';
import { type ListenedSocket, UdpSession } from './udp-session.ts';

const { downstream_sess_no_route, downstream_sess_tx_errors, downstream_sess_rx_errors } = UDP_PROXY_STATS.index;
const { downstream_rx_datagram_dropped } = UDP_LISTENER_STATS.index;

/** For how long no session begins when there was no descriptor for one. */
const PAUSE_MS = 100;

export class UdpProxy implements DatagramService {
  readonly settings: UdpProxySettings;
  /** Null when nothing is logged. */
  readonly accessLog: AccessLog | null;
  readonly #context: WorkerContext;
  readonly #clusters: ClusterMap;
  readonly #overload: Overload;
  readonly #addresses: readonly Address[];
  readonly #statBase: number;
  /** First cells of UDP_CLUSTER_STATS, by cluster. */
  readonly #clusterStatBases: ReadonlyMap<string, number>;
  /** Null where all sessions have the same cluster. */
  readonly #chooseCluster: FindMatch<MetDatagram, string> | null;
  readonly #listenerStatBase: number;
  readonly #listened: ListenedSocket[] = [];
  #sessionCount = 0;
  #pausedUntilMs = 0;
  #hasToldOfPause = false;
  /** It has been said that the cluster would be spoken to in clear. */
  #hasWarned = false;

  constructor(
    context: WorkerContext,
    clusters: ClusterMap,
    { settings: { addresses }, udp: blocks }: ListenerSnapshot,
    settings: UdpProxySettings,
    overload: Overload,
  ) {
    this.#context = context;
    this.#clusters = clusters;
    this.#overload = overload;
    this.#addresses = addresses;
    this.settings = settings;
    this.#statBase = context.stats.base(blocks!.statBlock);
    this.#clusterStatBases = new Map(
      Object.entries(blocks!.clusterStatBlocks).map(([name, block]) => [name, context.stats.base(block)]),
    );
    const { matcher } = settings;
    const tools = { runtime: context.runtime, kernel: context.lbKernel };
    this.#chooseCluster =
      matcher === undefined ? null : compileMatchTree(matcher.tree, DATAGRAM_INPUTS, tools, (cluster) => cluster);
    this.#listenerStatBase = context.stats.base(blocks!.listenerStatBlock);
    this.accessLog = AccessLog.compile(context, clusters, settings);
  }

  get sessionCount(): number {
    return this.#sessionCount;
  }

  async listen(ports: readonly number[]): Promise<readonly number[]> {
    const bound: number[] = [];
    for (const [index, address] of this.#addresses.entries()) {
      bound.push(await this.#listenOn(address as IpAddress, ports[index]!));
    }
    return bound;
  }

  /** Closes its sockets, and with them all sessions: there is nothing to answer from any more. Idempotent. */
  stop(): void {
    for (const { socket, sessions } of this.#listened) {
      socket.close();
      for (const session of [...sessions.values()]) session.end();
    }
  }

  close(): void {
    this.accessLog?.close();
  }

  /** What a host is chosen by; null for nothing. */
  pickContext(cluster: Cluster, clientAddress: string): PickContext | null {
    const { hashPolicy: policy } = this.settings;
    if (policy === null || !cluster.isHashed) return null;
    const { lbKernel } = this.#context;
    lbKernel.hashLatin1(policy.kind === 'key' ? policy.key : plainAddress(clientAddress));
    const hash = new RequestHash(null);
    hash.add(lbKernel.hashHi | 0, lbKernel.hashLo | 0);
    return hash;
  }

  onSessionEnded({ listened, key }: UdpSession): void {
    listened.sessions.delete(key);
    this.#sessionCount--;
  }

  /** The descriptors of the process run short: for a while no session begins, and those that there are go on. */
  pause(): void {
    this.#pausedUntilMs = this.#context.clock.monotonicMs() + PAUSE_MS;
    if (this.#hasToldOfPause) return;
    this.#hasToldOfPause = true;
    const where = formatAddress(this.#addresses[0]!);
    this.#context.logs.connection.warning(
      `datagrams of new clients on ${where} are dropped: the descriptors of the process run short`,
    );
  }

  /** @param stat of UDP_PROXY_STATS. */
  count(stat: number, change: number): void {
    this.#context.stats.values[this.#statBase + stat]! += change;
  }

  /** First cell of UDP_CLUSTER_STATS. @param cluster that a session has. */
  clusterStatBase(cluster: string): number {
    return this.#clusterStatBases.get(cluster)!;
  }

  // ---- Inside ----

  async #listenOn(address: IpAddress, port: number): Promise<number> {
    const sessions = new Map<string, UdpSession>();
    const socket = new DatagramSocket(address.ip, address.acceptsIpv4 === true, true, {
      onDatagram: (bytes, from) => this.#onDatagram(listened, bytes, from),
      onDatagramError: (isSending) => this.count(isSending ? downstream_sess_tx_errors : downstream_sess_rx_errors, 1),
    });
    const local = { ip: address.ip, port };
    const listened: ListenedSocket = { socket, local, sessions };
    this.#listened.push(listened);
    try {
      local.port = await socket.bind(address.ip, port);
      return local.port;
    } catch (error) {
      const text = `cannot listen on ${formatAddress({ ...address, port })} (UDP): ${errorMessage(error)}`;
      throw new WeirError('WEIR_LISTEN', text, { cause: error });
    }
  }

  #onDatagram(listened: ListenedSocket, bytes: Buffer, from: RemoteInfo): void {
    if (bytes.length > this.settings.maxClientDatagramBytes) {
      this.#drop();
      return;
    }
    const key = `${from.port} ${from.address}`;
    const session = listened.sessions.get(key);
    if (session !== undefined) session.forward(bytes);
    else this.#begin(listened, bytes, from, key);
  }

  #begin(listened: ListenedSocket, bytes: Buffer, from: RemoteInfo, key: string): void {
    if (this.#overload.stopsAccepting || this.#context.clock.monotonicMs() < this.#pausedUntilMs) {
      this.#drop();
      return;
    }
    const name =
      this.#chooseCluster === null ? this.settings.cluster : this.#chooseCluster({ from, local: listened.local });
    const cluster = name === undefined ? undefined : this.#clusters.get(name);
    if (cluster === undefined || !this.#mayCarry(cluster)) {
      this.count(downstream_sess_no_route, 1);
      return;
    }
    const session = new UdpSession(this.#context, this, cluster, listened, from, key);
    listened.sessions.set(key, session);
    this.#sessionCount++;
    // Nobody remembers a client that nothing can be done for: sources of datagrams are easily made up.
    if (!session.forward(bytes)) session.end();
  }

  /** What a cluster would secure is not sent in clear, and hosts that requests name are named by none here. */
  #mayCarry({ settings, destinations }: Cluster): boolean {
    if (settings.tls === undefined && destinations === null) return true;
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      const why = destinations === null ? 'is spoken to by TLS' : 'has hosts on demand';
      this.#context.logs.upstream.error(`no datagram is sent to cluster ${settings.name}, which ${why}`);
    }
    return false;
  }

  #drop(): void {
    this.#context.stats.values[this.#listenerStatBase + downstream_rx_datagram_dropped]! += 1;
  }
}
