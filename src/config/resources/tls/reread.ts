// The TLS contexts of listeners and clusters once more, from the messages that those were made of and from the files as they are
// now. One round of reading: equal contexts are read once.

import type { DownstreamTlsSettings, TlsFile, TlsSettings, UpstreamTlsSettings } from '../../../snapshot/index.ts';
import { protoSchema } from '../../proto/root.ts';
import { decodeMessage } from '../../proto/wire.ts';
import { encodeMessage } from '../../proto/wire-parts.ts';
import { ClusterNames, type Conversion } from '../conversion.ts';
import type { Cluster, DownstreamTlsContext, Listener, Secret, UpstreamTlsContext } from '../messages.ts';
import { upstreamMessagesOf } from '../upstream-transport.ts';
import { convertDownstreamContext } from './downstream-context.ts';
import { FileTrail } from './file-trail.ts';
import { staticSecrets } from './secrets.ts';
import { tlsContextOf } from './transport-socket.ts';
import { convertUpstreamContext } from './upstream-context.ts';

const LISTENER = 'proxy.config.listener.v3.Listener';
const CLUSTER = 'proxy.config.cluster.v3.Cluster';
const TLS = 'proxy.extensions.transport_sockets.tls.v3';

export interface ReadFault {
  /** Path of the field from the context. */
  readonly at: string;
  readonly text: string;
}

export interface ReadContext<Settings extends TlsSettings = TlsSettings> {
  /** Of use only where there are no faults. */
  readonly settings: Settings;
  readonly faults: readonly ReadFault[];
  readonly warnings: readonly ReadFault[];
  /** All that were looked at, also where a fault was found. */
  readonly files: readonly TlsFile[];
}

export interface RereadInput {
  /** Messages of the bootstrap's secrets. */
  readonly secrets: readonly Uint8Array[];
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
}

export class TlsReader {
  readonly #downstream: ContextReader<DownstreamTlsContext, DownstreamTlsSettings>;
  readonly #upstream: ContextReader<UpstreamTlsContext, UpstreamTlsSettings>;

  constructor({ secrets, environment }: RereadInput) {
    const type = protoSchema().messageType(`${TLS}.Secret`);
    const messages = secrets.map((bytes) => decodeMessage(type, bytes) as unknown as Secret);
    const conversion = { clusters: NO_CLUSTERS, secrets: staticSecrets(messages, 'secrets', NOWHERE), environment };
    this.#downstream = new ContextReader('DownstreamTlsContext', convertDownstreamContext, conversion);
    this.#upstream = new ContextReader('UpstreamTlsContext', convertUpstreamContext, conversion);
  }

  /** @param message of a listener. @returns by filter chain, the default one last; undefined for one without TLS. */
  readListener(message: Uint8Array): readonly (ReadContext<DownstreamTlsSettings> | undefined)[] {
    const listener = decodeMessage(protoSchema().messageType(LISTENER), message) as unknown as Listener;
    const { filter_chains: chains, default_filter_chain: last } = listener;
    return [...chains, ...(last === null ? [] : [last])].map((chain) =>
      this.#downstream.read(tlsContextOf(chain)?.context),
    );
  }

  /** @param message of a cluster. @returns its own, then those of its matches; undefined for plain connections. */
  readCluster(message: Uint8Array): readonly (ReadContext<UpstreamTlsSettings> | undefined)[] {
    const cluster = decodeMessage(protoSchema().messageType(CLUSTER), message) as unknown as Cluster;
    return upstreamMessagesOf(cluster).map((context) => this.#upstream.read(context));
  }
}

/** Contexts of one side. */
class ContextReader<Message extends object, Settings extends TlsSettings> {
  readonly #type: ReturnType<ReturnType<typeof protoSchema>['messageType']>;
  readonly #convert: (message: Message, at: string, conversion: Conversion) => Settings;
  readonly #conversion: Omit<Conversion, 'faults' | 'trail'>;
  readonly #known = new Map<string, ReadContext<Settings>>();

  constructor(
    type: string,
    convert: (message: Message, at: string, conversion: Conversion) => Settings,
    conversion: Omit<Conversion, 'faults' | 'trail'>,
  ) {
    this.#type = protoSchema().messageType(`${TLS}.${type}`);
    this.#convert = convert;
    this.#conversion = conversion;
  }

  read(context: Message | undefined): ReadContext<Settings> | undefined {
    if (context === undefined) return undefined;
    const key = Buffer.from(encodeMessage(this.#type, context)).toString('latin1');
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const faults: ReadFault[] = [];
    const warnings: ReadFault[] = [];
    const trail = new FileTrail();
    const settings = this.#convert(context, '', {
      ...this.#conversion,
      faults: {
        error: (at, text) => faults.push({ at: withoutDot(at), text }),
        warning: (at, text) => warnings.push({ at: withoutDot(at), text }),
      },
      trail,
    });
    const read = { settings, faults, warnings, files: trail.files };
    this.#known.set(key, read);
    return read;
  }
}

/** Secrets of the bootstrap have been checked when it was loaded. */
const NOWHERE = { error: (): void => {}, warning: (): void => {} };
const NO_CLUSTERS = new ClusterNames([]);

function withoutDot(at: string): string {
  return at.replace(/^\./, '');
}
