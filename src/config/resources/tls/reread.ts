// The TLS contexts of listeners once more, from the messages that the listeners were made of and from the files as they are now.
// One round of reading: equal contexts are read once.

import type { DownstreamTlsSettings, TlsFile } from '../../../snapshot/index.ts';
import { protoSchema } from '../../proto/root.ts';
import { decodeMessage } from '../../proto/wire.ts';
import { encodeMessage } from '../../proto/wire-parts.ts';
import { ClusterNames, type Conversion } from '../conversion.ts';
import type { FilterChain, Listener, Secret } from '../messages.ts';
import { convertDownstreamContext } from './downstream-context.ts';
import { FileTrail } from './file-trail.ts';
import { type StaticSecrets, staticSecrets } from './secrets.ts';
import { tlsContextOf } from './transport-socket.ts';

const LISTENER = 'proxy.config.listener.v3.Listener';
const SECRET = 'proxy.extensions.transport_sockets.tls.v3.Secret';
const CONTEXT = 'proxy.extensions.transport_sockets.tls.v3.DownstreamTlsContext';

export interface ReadFault {
  /** Path of the field from the context. */
  readonly at: string;
  readonly text: string;
}

export interface ReadContext {
  /** Of use only where there are no faults. */
  readonly settings: DownstreamTlsSettings;
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
  readonly #secrets: StaticSecrets;
  readonly #environment: Conversion['environment'];
  readonly #known = new Map<string, ReadContext>();

  constructor({ secrets, environment }: RereadInput) {
    const type = protoSchema().messageType(SECRET);
    const messages = secrets.map((bytes) => decodeMessage(type, bytes) as unknown as Secret);
    this.#secrets = staticSecrets(messages, 'secrets', NOWHERE);
    this.#environment = environment;
  }

  /** @param message of a listener. @returns by filter chain, the default one last; undefined for one without TLS. */
  read(message: Uint8Array): readonly (ReadContext | undefined)[] {
    const listener = decodeMessage(protoSchema().messageType(LISTENER), message) as unknown as Listener;
    const { filter_chains: chains, default_filter_chain: last } = listener;
    return [...chains, ...(last === null ? [] : [last])].map((chain) => this.#read(chain));
  }

  #read(chain: FilterChain): ReadContext | undefined {
    const context = tlsContextOf(chain)?.context;
    if (context === undefined) return undefined;
    const key = Buffer.from(encodeMessage(protoSchema().messageType(CONTEXT), context)).toString('latin1');
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const faults: ReadFault[] = [];
    const warnings: ReadFault[] = [];
    const trail = new FileTrail();
    const settings = convertDownstreamContext(context, '', {
      faults: {
        error: (at, text) => faults.push({ at: withoutDot(at), text }),
        warning: (at, text) => warnings.push({ at: withoutDot(at), text }),
      },
      clusters: NO_CLUSTERS,
      secrets: this.#secrets,
      environment: this.#environment,
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
