// The way to a gRPC service: a channel to a target, or to one host of a cluster after the other. After a failure there is a pause
// that grows, in which nothing is tried. Main thread.

import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { type Address, formatAddress } from '../../../base/address.ts';
import { JitteredBackoff } from '../../../base/backoff.ts';
import { SYSTEM_RANDOM } from '../../../base/random.ts';
import type { ActiveCluster, StatSinkContext } from '../../../control-plane/index.ts';

/** Where faults are, as the log says it. */
export const GRPC_CALL = 'the gRPC call of a stats sink';

/** As loggers know this file. */
const FILE = 'src/extensions/stat_sinks/grpc/service-channel.ts';

export interface GrpcServiceSettings {
  readonly target:
    | { readonly kind: 'cluster'; readonly cluster: string; readonly authority: string }
    | { readonly kind: 'uri'; readonly uri: string };
  readonly metadata: readonly { readonly key: string; readonly value: string }[];
  /** Of a call with one answer. */
  readonly timeoutMs: number;
}

export type ChannelContext = Pick<StatSinkContext, 'clock' | 'counts' | 'hostOf' | 'log'>;

/** What calls are made with. */
export interface OpenChannel {
  readonly client: Client;
  /** Counts the calls; undefined of a target that is no cluster. */
  readonly cluster: ActiveCluster | undefined;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
const BINARY = '-bin';

const OPTIONS = {
  // The environment's proxies are not for this one's own calls.
  'grpc.enable_http_proxy': 0,
  'grpc.enable_channelz': 0,
  // Ends with its client.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.service_config_disable_resolution': 1,
  // No pings either: servers end connections that ping more often than they like, and calls have bounds of their own.
  'grpc.enable_retries': 0,
};

export class ServiceChannel {
  readonly #settings: GrpcServiceSettings;
  readonly #context: ChannelContext;
  readonly #metadata = new Metadata();
  readonly #backoff = new JitteredBackoff(SYSTEM_RANDOM, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  #open: OpenChannel | undefined;
  /** By the monotonic clock. */
  #nextTryMs = 0;

  constructor(settings: GrpcServiceSettings, context: ChannelContext) {
    this.#settings = settings;
    this.#context = context;
    for (const { key, value } of settings.metadata) {
      this.#metadata.add(key, key.endsWith(BINARY) ? Buffer.from(value) : value);
    }
  }

  /** For one call; the library adds to it. */
  metadata(): Metadata {
    return this.#metadata.clone();
  }

  /** @returns undefined during a pause, and where the cluster has no host. */
  get(): OpenChannel | undefined {
    if (this.#open === undefined && this.#context.clock.monotonicMs() >= this.#nextTryMs) this.#connect();
    return this.#open;
  }

  /** A call over the channel has come to nothing: the next one is another, after a pause. */
  failed(channel: OpenChannel, reason: string): void {
    this.#context.log.ofFile(FILE).debug(`a stats sink has lost its gRPC service: ${reason}`);
    // Others that were under way fail after the first.
    if (channel !== this.#open) return;
    this.#pause();
  }

  /** A call has been answered, or a stream has taken a message. */
  succeeded(): void {
    this.#backoff.reset();
  }

  close(): void {
    this.#nextTryMs = Number.POSITIVE_INFINITY;
    this.#open?.client.close();
    this.#open = undefined;
  }

  #connect(): void {
    const { target } = this.#settings;
    if (target.kind === 'uri') {
      this.#open = { client: new Client(target.uri, credentials.createInsecure(), OPTIONS), cluster: undefined };
      return;
    }
    const host = this.#context.hostOf(target.cluster);
    if (host === undefined) {
      this.#context.counts.add('send_failures');
      this.#pause();
      return;
    }
    const options = { ...OPTIONS, 'grpc.default_authority': target.authority };
    const client = new Client(channelTarget(host.address), credentials.createInsecure(), options);
    this.#open = { client, cluster: host.cluster };
  }

  #pause(): void {
    this.#open?.client.close();
    this.#open = undefined;
    this.#nextTryMs = Math.max(this.#nextTryMs, this.#context.clock.monotonicMs() + this.#backoff.nextMs());
  }
}

/** Messages are encoded before they come here. */
export function asItIs(bytes: Buffer): Buffer {
  return bytes;
}

/** As gRPC libraries name it. */
function channelTarget(address: Address): string {
  if (address.kind === 'ip') return `${address.ip.includes(':') ? 'ipv6' : 'ipv4'}:${formatAddress(address)}`;
  return address.path.startsWith('@') ? `unix-abstract:${address.path.slice(1)}` : `unix:${address.path}`;
}
