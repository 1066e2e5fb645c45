// BindConfig → how the sockets of upstream connections begin: source addresses by the family of the host, socket options.

import type { IpAddress } from '../../base/address.ts';
import { familyOf, type IpFamily } from '../../base/address-families.ts';
import type { ConnectionOrigin, SocketSource } from '../../base/own-sockets.ts';
import { convertSocketAddress } from './address.ts';
import type { FaultSink } from './fault-sink.ts';
import type { BindConfig, SocketOption } from './messages.ts';
import { type ConvertedSocketOption, convertRawOption, FREEBIND, optionsOf } from './raw-socket-options.ts';

/** That of the message, and one of the other family. */
const MOST_ADDRESSES = 2;

export interface ConvertedBindConfig {
  /** The first is that of hosts whose family no other has. */
  readonly sources: readonly ConvertedSource[];
  /** Null where the message does not say. */
  readonly freebind: boolean | null;
  /** Of sources without their own. */
  readonly options: readonly ConvertedSocketOption[];
}

interface ConvertedSource {
  /** Undefined leaves it to the system. */
  readonly address: IpAddress | undefined;
  /** Undefined for those of the message. */
  readonly options: readonly ConvertedSocketOption[] | undefined;
}

const NO_BIND_CONFIG: ConvertedBindConfig = {
  sources: [{ address: undefined, options: undefined }],
  freebind: null,
  options: [],
};

export function convertBindConfig(message: BindConfig, at: string, faults: FaultSink): ConvertedBindConfig {
  const address = convertSource(message.source_address, `${at}.source_address`, faults);
  const extra = message.extra_source_addresses.map((source, index) => {
    const path = `${at}.extra_source_addresses[${index}]`;
    const own = source.socket_options;
    return {
      address: convertSource(source.address, `${path}.address`, faults),
      options: own === null ? undefined : convertOptions(own.socket_options, `${path}.socket_options`, faults),
    };
  });
  const additional = message.additional_source_addresses.map((source, index) => ({
    address: convertSource(source, `${at}.additional_source_addresses[${index}]`, faults),
    options: undefined,
  }));
  const sources = [{ address, options: undefined }, ...extra, ...additional];
  checkSources(message, sources, at, faults);
  return {
    sources,
    freebind: message.freebind?.value ?? null,
    options: convertOptions(message.socket_options, at, faults),
  };
}

/** Addresses are those of one of both; what the cluster does not say of options, the bootstrap does. */
export function originOf(
  ofCluster: ConvertedBindConfig | undefined,
  ofBootstrap: ConvertedBindConfig | undefined,
): ConnectionOrigin {
  const own = ofCluster ?? ofBootstrap ?? NO_BIND_CONFIG;
  const fallback = ofBootstrap ?? NO_BIND_CONFIG;
  const freebind = own.freebind ?? fallback.freebind ?? false;
  const options = own.options.length > 0 ? own.options : fallback.options;
  const v4 = sourceFor('v4', own.sources, freebind, options);
  const v6 = sourceFor('v6', own.sources, freebind, options);
  const isPlain = [v4, v6].every(({ beforeBind, afterBind }) => beforeBind.length === 0 && afterBind.length === 0);
  if (isPlain && v4.address === v6.address) return { sourceAddress: v4.address };
  return { sourceAddress: undefined, sourcesByFamily: { v4, v6 } };
}

function sourceFor(
  family: IpFamily,
  sources: readonly ConvertedSource[],
  freebind: boolean,
  common: readonly ConvertedSocketOption[],
): SocketSource {
  const fitting = sources.find(({ address }) => address !== undefined && familyOf(address.ip) === family);
  const { address, options = common } = fitting ?? sources[0]!;
  return {
    address,
    beforeBind: [...(freebind ? [FREEBIND[family]] : []), ...optionsOf(options, family, 'prebind')],
    afterBind: optionsOf(options, family, 'bound'),
  };
}

function convertSource(message: BindConfig['source_address'], at: string, faults: FaultSink): IpAddress | undefined {
  return message === null ? undefined : convertSocketAddress(message, at, 'source', faults);
}

/** @param at path of the message that holds the list. */
function convertOptions(options: readonly SocketOption[], at: string, faults: FaultSink): ConvertedSocketOption[] {
  const converted: ConvertedSocketOption[] = [];
  for (const [index, option] of options.entries()) {
    const path = `${at}.socket_options[${index}]`;
    const result = convertRawOption(option, path, faults);
    if (result?.state === 'listening') faults.warning(path, 'has no effect: a connection to an upstream never listens');
    else if (result !== undefined) converted.push(result);
  }
  return converted;
}

function checkSources(message: BindConfig, sources: readonly ConvertedSource[], at: string, faults: FaultSink): void {
  if (message.extra_source_addresses.length > 0 && message.additional_source_addresses.length > 0) {
    faults.error(at, 'extra_source_addresses and additional_source_addresses cannot both be set');
    return;
  }
  if (sources.length === 1) return;
  const families = sources.flatMap(({ address }) => (address === undefined ? [] : [familyOf(address.ip)]));
  if (sources.length > MOST_ADDRESSES) faults.error(at, 'has more than one source address beside source_address');
  else if (message.source_address === null) faults.error(at, 'further source addresses need a source_address');
  else if (families.length < sources.length) faults.error(at, 'source addresses beside others must not be empty');
  else if (families[0] === families[1]) faults.error(at, 'source addresses must be of different families');
}
