// The datagrams of one client, by its address and port, and those of its hosts to it. One host until the session ends, unless
// each datagram picks one: then the session has a socket for each host that it has met.

import type { RemoteInfo } from 'node:dgram';
import { CLUSTER_STATS, UDP_CLUSTER_STATS, UDP_PROXY_STATS } from '../../stats/index.ts';
import type { DownstreamFacts, IngressFacts } from '../format/facts.ts';
import { StreamFacts } from '../format/stream-facts.ts';
import { plainAddress } from '../network/peer-address.ts';
import { type TimeoutOwner, TimerEntry } from '../network/timer-wheel.ts';
import type { Cluster } from '../upstream/cluster.ts';
import type { Host } from '../upstream/host.ts';
import { UpstreamEnd } from '../upstream/upstream-facts.ts';
import type { WorkerContext } from '../worker-context.ts';
import type { DatagramSocket } from './datagram-socket.ts';
import type { UdpProxy } from './udp-proxy.ts';
import { UdpUpstream, type UdpUpstreamOwner } from './udp-upstream.ts';

const PROXY = UDP_PROXY_STATS.index;
const CLUSTER = UDP_CLUSTER_STATS.index;
const { upstream_cx_none_healthy, upstream_cx_overflow } = CLUSTER_STATS.index;
const NO_INGRESS: IngressFacts = { chainName: '', chainMetadata: undefined, listenerMetadata: undefined };
/** Where logs find what a session has carried. */
const METADATA = 'udp.proxy.session';

/** A socket of a listener, and where it listens. */
export interface ListenedSocket {
  readonly socket: DatagramSocket;
  readonly local: { readonly ip: string; readonly port: number };
  readonly sessions: Map<string, UdpSession>;
}

export class UdpSession implements UdpUpstreamOwner, TimeoutOwner {
  readonly key: string;
  readonly listened: ListenedSocket;
  readonly #context: WorkerContext;
  readonly #proxy: UdpProxy;
  readonly #cluster: Cluster;
  readonly #clusterStatBase: number;
  readonly #client: RemoteInfo;
  readonly #timer = new TimerEntry(this);
  /** One, or several where each datagram picks its host. */
  readonly #upstreams = new Map<Host, UdpUpstream>();
  /** Null when nothing is logged. */
  readonly #facts: StreamFacts | null;
  #isEnded = false;
  #datagramsReceived = 0;
  #datagramsSent = 0;
  #bytesReceived = 0;
  #bytesSent = 0;
  #errorsReceived = 0;
  #errorsSent = 0;

  constructor(
    context: WorkerContext,
    proxy: UdpProxy,
    cluster: Cluster,
    listened: ListenedSocket,
    client: RemoteInfo,
    key: string,
  ) {
    this.#context = context;
    this.#proxy = proxy;
    this.#cluster = cluster;
    this.#clusterStatBase = proxy.clusterStatBase(cluster.name);
    this.#client = client;
    this.listened = listened;
    this.key = key;
    cluster.acquire();
    proxy.count(PROXY.downstream_sess_total, 1);
    proxy.count(PROXY.downstream_sess_active, 1);
    const startMs = context.clock.monotonicMs();
    this.#facts = proxy.accessLog === null ? null : this.#newFacts(startMs);
  }

  /** Sends what its client has sent. @returns false where there is nobody to send it to. */
  forward(bytes: Buffer): boolean {
    const upstream = this.#upstream();
    if (upstream === null) return false;
    this.#touch();
    this.#datagramsReceived++;
    this.#bytesReceived += bytes.length;
    this.#proxy.count(PROXY.downstream_sess_rx_datagrams, 1);
    this.#proxy.count(PROXY.downstream_sess_rx_bytes, bytes.length);
    upstream.send(bytes);
    return true;
  }

  /** Idempotent. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#context.wheel.remove(this.#timer);
    for (const upstream of this.#upstreams.values()) upstream.close();
    this.#upstreams.clear();
    this.#proxy.count(PROXY.downstream_sess_active, -1);
    this.#log();
    this.#proxy.onSessionEnded(this);
    this.#cluster.release();
  }

  onTimeout(): void {
    this.#proxy.count(PROXY.idle_timeout, 1);
    this.end();
  }

  // ---- From its hosts ----

  onUpstreamDatagram(bytes: Buffer): void {
    if (bytes.length > this.#proxy.settings.maxHostDatagramBytes) {
      this.#countDatagrams(CLUSTER.sess_rx_datagrams_dropped);
      return;
    }
    this.#touch();
    this.#countDatagrams(CLUSTER.sess_rx_datagrams);
    if (!this.listened.socket.send(bytes, this.#client)) {
      this.#proxy.count(PROXY.downstream_sess_tx_errors, 1);
      return;
    }
    this.#datagramsSent++;
    this.#bytesSent += bytes.length;
    this.#proxy.count(PROXY.downstream_sess_tx_datagrams, 1);
    this.#proxy.count(PROXY.downstream_sess_tx_bytes, bytes.length);
  }

  onUpstreamSent(isSent: boolean): void {
    if (!isSent) this.#errorsSent++;
    this.#countDatagrams(isSent ? CLUSTER.sess_tx_datagrams : CLUSTER.sess_tx_errors);
  }

  /** Nobody listens there, mostly; that may change. */
  onUpstreamReceiveError(): void {
    this.#errorsReceived++;
    this.#countDatagrams(CLUSTER.sess_rx_errors);
  }

  onUpstreamWithoutRoom(): void {
    this.#proxy.pause();
  }

  /** The client's next datagram begins another session, with another host. */
  onUpstreamGone(upstream: UdpUpstream): void {
    this.#upstreams.delete(upstream.host);
    if (this.#upstreams.size === 0) this.end();
  }

  // ---- Inside ----

  #upstream(): UdpUpstream | null {
    const [known] = this.#upstreams.values();
    if (known !== undefined && !this.#proxy.settings.picksPerDatagram && !known.host.isUnhealthy) return known;
    const host = this.#cluster.chooseHost(this.#proxy.pickContext(this.#cluster, this.#client.address));
    if (host === null) {
      this.#countCluster(this.#cluster, upstream_cx_none_healthy);
      // A host that is ill is better than none.
      return known ?? null;
    }
    const same = this.#upstreams.get(host);
    if (same !== undefined) return same;
    if (!host.tryAcquireConnection(host.cluster.breaker)) {
      this.#countCluster(host.cluster, upstream_cx_overflow);
      return known ?? null;
    }
    if (!this.#proxy.settings.picksPerDatagram) this.#leave(known);
    const upstream = new UdpUpstream(this.#context, host, this);
    this.#upstreams.set(host, upstream);
    if (this.#facts !== null) {
      this.#facts.upstream = new UpstreamEnd(host);
      this.#facts.upstreamCluster = host.cluster.settings.name;
    }
    return upstream;
  }

  /** Its host is ill, and there is another. */
  #leave(former: UdpUpstream | undefined): void {
    if (former === undefined) return;
    this.#upstreams.delete(former.host);
    former.close();
  }

  #touch(): void {
    const { idleTimeoutMs } = this.#proxy.settings;
    if (idleTimeoutMs > 0) this.#context.wheel.arm(this.#timer, this.#context.clock.monotonicMs() + idleTimeoutMs);
  }

  /** @param stat of UDP_CLUSTER_STATS. */
  #countDatagrams(stat: number): void {
    this.#context.stats.values[this.#clusterStatBase + stat]! += 1;
  }

  #countCluster({ statBase }: Cluster, stat: number): void {
    this.#context.stats.values[statBase + stat]! += 1;
  }

  #newFacts(startMs: number): StreamFacts {
    const { address, port } = this.#client;
    const remote = { ip: plainAddress(address), port };
    const { local } = this.listened;
    const downstream: DownstreamFacts = {
      connectionId: this.#context.nextConnectionId(),
      startMs,
      securedMs: -1,
      remote,
      directRemote: remote,
      local,
      directLocal: local,
      originalDestination: null,
      requestedServerName: '',
      transportProtocol: 'raw_buffer',
      applicationProtocols: [],
      tls: null,
      metadata: undefined,
      state: () => undefined,
      transportFailure: '',
    };
    const facts = new StreamFacts(this.#context.clock, startMs, downstream, 'UdpSessionEnd', NO_INGRESS);
    facts.upstreamCluster = this.#cluster.settings.name;
    facts.clusterMetadata = this.#cluster.settings.metadata;
    return facts;
  }

  #log(): void {
    const facts = this.#facts;
    if (facts === null) return;
    facts.endMs = this.#context.clock.monotonicMs();
    facts.bytesReceived = this.#bytesReceived;
    facts.bytesSent = this.#bytesSent;
    facts.dynamicMetadata = {
      [METADATA]: {
        cluster_name: this.#cluster.settings.name,
        bytes_received: this.#bytesReceived,
        bytes_sent: this.#bytesSent,
        datagrams_received: this.#datagramsReceived,
        datagrams_sent: this.#datagramsSent,
        errors_received: this.#errorsReceived,
        errors_sent: this.#errorsSent,
      },
    };
    this.#proxy.accessLog!.write(facts);
  }
}
