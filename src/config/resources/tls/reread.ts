// The TLS contexts of listeners and clusters once more, from the messages that those were made of and from the files as they are
// now. One round of reading: equal contexts are read once.

import type { DownstreamTlsSettings, TlsFile, TlsSettings, UpstreamTlsSettings } from '../../../snapshot/index.ts';
import { protoSchema } from '../../proto/root.ts';
import { decodeMessage } from '../../proto/wire.ts';
import { encodeMessage } from '../../proto/wire-parts.ts';
import { ClusterNames, type Conversion } from '../conversion.ts';
import type { Cluster, DownstreamTlsContext, Listener, Secret, UpstreamTlsContext } from '../messages.ts';
import type { SourceContext } from '../source-context.ts';
import { upstreamMessagesOf } from '../upstream-transport.ts';
import { convertDownstreamContext } from './downstream-context.ts';
import type { DiscoveredSecrets } from './secret-stores.ts';
import { staticSecrets } from './secrets.ts';
import { SourceTrail } from './source-trail.ts';
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
  /** The same without secrets that have come by discovery: what the configuration itself says, by which it is compared. */
  readonly configured: Settings;
  readonly faults: readonly ReadFault[];
  readonly warnings: readonly ReadFault[];
  /** All that were looked at, also where a fault was found. */
  readonly files: readonly TlsFile[];
}

export interface RereadInput {
  /** Messages of the bootstrap's secrets. */
  readonly secrets: readonly Uint8Array[];
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** As of Conversion. */
  readonly sources?: SourceContext | undefined;
  readonly discoveredSecrets?: DiscoveredSecrets | undefined;
}

export class TlsReader {
  readonly #downstream: ContextReader<DownstreamTlsContext, DownstreamTlsSettings>;
  readonly #upstream: ContextReader<UpstreamTlsContext, UpstreamTlsSettings>;

  constructor({ secrets, ...given }: RereadInput) {
    const type = protoSchema().messageType(`${TLS}.Secret`);
    const messages = secrets.map((bytes) => decodeMessage(type, bytes) as unknown as Secret);
    const conversion = { ...given, clusters: ANY_CLUSTERS, secrets: staticSecrets(messages, 'secrets', NOWHERE) };
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
    const trail = new SourceTrail();
    const settings = this.#convert(context, '', {
      ...this.#conversion,
      faults: {
        error: (at, text) => faults.push({ at: withoutDot(at), text }),
        warning: (at, text) => warnings.push({ at: withoutDot(at), text }),
      },
      trail,
    });
    const configured = settings.secrets.length === 0 ? settings : this.#readConfigured(context);
    const read = { settings, configured, faults, warnings, files: trail.files };
    this.#known.set(key, read);
    return read;
  }

  #readConfigured(context: Message): Settings {
    return this.#convert(context, '', {
      ...this.#conversion,
      discoveredSecrets: undefined,
      faults: NOWHERE,
      trail: new SourceTrail(),
    });
  }
}

/** Secrets of the bootstrap have been checked when it was loaded. */
const NOWHERE = { error: (): void => {}, warning: (): void => {} };
const ANY_CLUSTERS = new ClusterNames([], { areUnknown: true });

function withoutDot(at: string): string {
  return at.replace(/^\./, '');
}
