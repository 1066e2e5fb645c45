// The PROXY protocol listener filter: a proxy in front says in a header whose connection it passes on. The addresses
// it names become those of the connection, for matching, forwarding headers and logs.
// Source: spec, ProxyProtocol listener filter.

import { readTlvs, selects, tlv } from '../../../base/proxy-header.ts';
import type { ListenerFilterSnapshot, ProxyProtocolSettings } from '../../../snapshot/index.ts';
import { PROXY_PROTOCOL_STATS } from '../../../stats/index.ts';
import type { DownstreamConnection } from '../../network/downstream-connection.ts';
import type { WorkerContext } from '../../worker-context.ts';
import { type ListenerFilter, NEED_MORE, REFUSED } from './filter.ts';
import { ABSENT, BROKEN, INCOMPLETE, type ProxyHeader, type ProxyHeaderResult } from './proxy-header.ts';
import { parseProxyV1 } from './proxy-header-v1.ts';
import { parseProxyV2 } from './proxy-header-v2.ts';

const stats = PROXY_PROTOCOL_STATS.index;
/** What stands for bytes that are no UTF-8. */
const NO_CHARACTER = '\ufffd';
const IN_ITS_PLACE = '!';

interface Version {
  readonly parse: (bytes: Buffer, start: number, end: number) => ProxyHeaderResult;
  readonly isAccepted: (settings: ProxyProtocolSettings) => boolean;
  readonly found: number;
  readonly disallowed: number;
  readonly error: number;
}

const VERSIONS: readonly Version[] = [
  {
    parse: parseProxyV1,
    isAccepted: ({ acceptsV1 }) => acceptsV1,
    found: stats['versions.v1.found'],
    disallowed: stats['versions.v1.disallowed'],
    error: stats['versions.v1.error'],
  },
  {
    parse: parseProxyV2,
    isAccepted: ({ acceptsV2 }) => acceptsV2,
    found: stats['versions.v2.found'],
    disallowed: stats['versions.v2.disallowed'],
    error: stats['versions.v2.error'],
  },
];

export class ProxyProtocolFilter implements ListenerFilter {
  readonly readsBytes = true;
  readonly #context: WorkerContext;
  readonly #settings: ProxyProtocolSettings;
  readonly #statBase: number;

  constructor(context: WorkerContext, { settings, statBlock }: ListenerFilterSnapshot<ProxyProtocolSettings>) {
    this.#context = context;
    this.#settings = settings;
    this.#statBase = context.stats.base(statBlock);
  }

  inspect(bytes: Buffer, start: number, end: number, connection: DownstreamConnection): number {
    let isUndecided = false;
    for (const version of VERSIONS) {
      const isAccepted = version.isAccepted(this.#settings);
      // Without a duty to send a header, what looks like one of another version is data.
      if (!isAccepted && this.#settings.isOptional) continue;
      const header = version.parse(bytes, start, end);
      if (header === INCOMPLETE) isUndecided = true;
      else if (header !== ABSENT)
        return this.#take(version, isAccepted, header, bytes.subarray(start, end), connection);
    }
    if (isUndecided) return NEED_MORE;
    this.#count(this.#settings.isOptional ? stats.not_found_allowed : stats.not_found_disallowed);
    return this.#settings.isOptional ? 0 : REFUSED;
  }

  #take(
    version: Version,
    isAccepted: boolean,
    header: Exclude<ProxyHeaderResult, typeof INCOMPLETE | typeof ABSENT>,
    bytes: Buffer,
    connection: DownstreamConnection,
  ): number {
    if (!isAccepted) {
      this.#count(version.disallowed);
      return REFUSED;
    }
    if (header === BROKEN || !this.#tell(header, bytes, connection)) {
      this.#count(version.error);
      return REFUSED;
    }
    this.#count(version.found);
    if (header.addresses !== null) connection.restoreAddresses(header.addresses);
    return header.length;
  }

  /** Says what the rules ask for, and keeps what is to be passed on. @returns false for TLVs that cannot be read. */
  #tell({ tlvsAt, length }: ProxyHeader, bytes: Buffer, connection: DownstreamConnection): boolean {
    const { rules, passes } = this.#settings;
    if ((rules.length === 0 && passes === undefined) || tlvsAt === undefined) return true;
    const told: (() => void)[] = [];
    const passed: Buffer[] = [];
    const isWhole = readTlvs(bytes, tlvsAt, length, (type, value) => {
      if (passes !== undefined && selects(passes, type)) passed.push(tlv(type, value));
      for (const rule of rules) {
        if (rule.type !== type) continue;
        const text = value.toString('utf8').replaceAll(NO_CHARACTER, IN_ITS_PLACE);
        told.push(() => connection.addMetadata(rule.namespace, { [rule.key]: text }));
      }
    });
    if (!isWhole) return false;
    for (const tell of told) tell();
    if (passed.length > 0) connection.passedTlvs = Buffer.concat(passed);
    return true;
  }

  #count(stat: number): void {
    this.#context.stats.values[this.#statBase + stat]! += 1;
  }
}
