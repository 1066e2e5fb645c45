// SocketOption messages → options by the numbers of the system, for one family of addresses.

import type { IpFamily } from '../../base/address-families.ts';
import type { RawSocketOption } from '../../base/own-sockets.ts';
import {
  SocketOption_SocketIpVersion as IpVersion,
  SocketOption_SocketState as State,
} from '../proto/generated/enums.ts';
import { int64ToNumber } from '../proto/int64.ts';
import type { FaultSink } from './fault-sink.ts';
import type { SocketOption } from './messages.ts';

const MAX_INT = 0x7fff_ffff;
const MAX_UNSIGNED_INT = 0xffff_ffff;

/** IP_FREEBIND and IPV6_FREEBIND of Linux. */
export const FREEBIND: Readonly<Record<IpFamily, RawSocketOption>> = {
  v4: { level: 0, name: 15, value: 1 },
  v6: { level: 41, name: 78, value: 1 },
};
/** IP_TRANSPARENT and IPV6_TRANSPARENT. */
export const TRANSPARENT: Readonly<Record<IpFamily, RawSocketOption>> = {
  v4: { level: 0, name: 19, value: 1 },
  v6: { level: 41, name: 75, value: 1 },
};

export type SocketState = 'prebind' | 'bound' | 'listening';

/** When it is set, and of which sockets; undefined for both families. */
export interface ConvertedSocketOption extends RawSocketOption {
  readonly state: SocketState;
  readonly family: IpFamily | undefined;
}

const STATES: ReadonlyMap<number, SocketState> = new Map([
  [State.STATE_PREBIND, 'prebind'],
  [State.STATE_BOUND, 'bound'],
  [State.STATE_LISTENING, 'listening'],
]);
const FAMILIES: ReadonlyMap<number, IpFamily> = new Map([
  [IpVersion.SOCKET_IP_VERSION_IPV4, 'v4'],
  [IpVersion.SOCKET_IP_VERSION_IPV6, 'v6'],
]);

/** @param at path of the option. @returns undefined for one that concerns no TCP socket, or that is wrong. */
export function convertRawOption(
  option: SocketOption,
  at: string,
  faults: FaultSink,
): ConvertedSocketOption | undefined {
  if (option.type !== null && option.type.datagram !== null) {
    faults.warning(at, 'has no effect: it is for datagrams');
    return undefined;
  }
  const level = numberWithin(option.level, MAX_INT, `${at}.level`, faults);
  const name = numberWithin(option.name, MAX_INT, `${at}.name`, faults);
  const value =
    option.value === 'buf_value'
      ? Buffer.from(option.buf_value).toString('hex')
      : numberWithin(option.int_value, MAX_UNSIGNED_INT, `${at}.int_value`, faults);
  if (level === undefined || name === undefined || value === undefined) return undefined;
  return { level, name, value, state: STATES.get(option.state) ?? 'prebind', family: FAMILIES.get(option.ip_version) };
}

/** What the system takes as an int. */
function numberWithin(value: SocketOption['level'], max: number, at: string, faults: FaultSink): number | undefined {
  const number = int64ToNumber(value);
  if (number >= -MAX_INT - 1 && number <= max) return number;
  faults.error(at, `${number} does not fit into an int`);
  return undefined;
}

/** Those of one family that are set in a state, in their order. */
export function optionsOf(
  options: readonly ConvertedSocketOption[],
  family: IpFamily,
  wanted: SocketState,
): RawSocketOption[] {
  return options
    .filter((option) => option.state === wanted && (option.family ?? family) === family)
    .map(({ level, name, value }) => ({ level, name, value }));
}
