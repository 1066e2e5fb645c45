// Socket options of a listener → what is set on accepted sockets. Options come as the numbers of the operating system;
// those of Linux that Node can set are known here, all others are for the sockets that listen (listening-options.ts).

import type { AcceptedSocketOptions, KeepaliveSettings, ListenerSettings } from '../../snapshot/index.ts';
import { SocketOption_SocketIpVersion as SocketIpVersion } from '../proto/generated/enums.ts';
import { int64ToNumber } from '../proto/int64.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Listener, SocketOption, TcpKeepalive } from './messages.ts';
import { valueOr } from './units.ts';

/** What applies where only some of the values are given. */
const LINUX_KEEPALIVE = { probes: 9, timeSeconds: 7200, intervalSeconds: 75 };
const MAX_TYPE_OF_SERVICE = 255;

interface OptionValues {
  noDelay: boolean;
  isKeptAlive: boolean;
  keepalive: { probes: number; timeSeconds: number; intervalSeconds: number };
  typeOfService: number;
}

/** By `level/name`: SOL_SOCKET is 1, IPPROTO_TCP 6, IPPROTO_IP 0. Each returns whether the value will do. */
const SETTERS: Readonly<Record<string, (values: OptionValues, value: number) => boolean>> = {
  // SO_KEEPALIVE
  '1/9': (values, value) => {
    values.isKeptAlive = value !== 0;
    return true;
  },
  // TCP_NODELAY
  '6/1': (values, value) => {
    values.noDelay = value !== 0;
    return true;
  },
  // TCP_KEEPIDLE
  '6/4': (values, value) => {
    values.keepalive.timeSeconds = value;
    return value > 0;
  },
  // TCP_KEEPINTVL
  '6/5': (values, value) => {
    values.keepalive.intervalSeconds = value;
    return value > 0;
  },
  // TCP_KEEPCNT
  '6/6': (values, value) => {
    values.keepalive.probes = value;
    return value > 0;
  },
  // IP_TOS
  '0/1': (values, value) => {
    values.typeOfService = value;
    return value >= 0 && value <= MAX_TYPE_OF_SERVICE;
  },
};

/** Whether the option is set on accepted sockets, of both families, and not on those that listen. */
export function isForAccepted(option: SocketOption): boolean {
  const isLimited = option.ip_version !== SocketIpVersion.SOCKET_IP_VERSION_UNSPECIFIED || option.type !== null;
  return !isLimited && option.value === 'int_value' && Object.hasOwn(SETTERS, keyOf(option));
}

export function convertSocketOptions(message: Listener, at: string, faults: FaultSink): AcceptedSocketOptions {
  const values: OptionValues = {
    noDelay: true,
    isKeptAlive: message.tcp_keepalive !== null,
    keepalive: convertKeepalive(message.tcp_keepalive),
    typeOfService: 0,
  };
  for (const [index, option] of message.socket_options.entries()) {
    if (isForAccepted(option)) applyOption(values, option, `${at}.socket_options[${index}]`, faults);
  }
  return {
    noDelay: values.noDelay,
    keepalive: values.isKeptAlive ? values.keepalive : undefined,
    typeOfService: values.typeOfService,
  };
}

/** @param addresses by their places in the message; undefined for one that cannot be used. */
export function convertOwnKeepalives(
  { additional_addresses: others }: Listener,
  addresses: readonly unknown[],
): Pick<ListenerSettings, 'ownKeepalives'> {
  const own = addresses.flatMap((address, index): (KeepaliveSettings | null)[] => {
    if (address === undefined) return [];
    const message = index === 0 ? null : others[index - 1]!.tcp_keepalive;
    return [message === null ? null : convertKeepalive(message)];
  });
  return own.every((keepalive) => keepalive === null) ? {} : { ownKeepalives: own };
}

function keyOf({ level, name }: SocketOption): string {
  return `${int64ToNumber(level)}/${int64ToNumber(name)}`;
}

function applyOption(values: OptionValues, option: SocketOption, at: string, faults: FaultSink): void {
  const key = keyOf(option);
  const value = int64ToNumber(option.int_value);
  if (!SETTERS[key]!(values, value)) faults.error(`${at}.int_value`, `${value} is not a value of socket option ${key}`);
}

function convertKeepalive(message: TcpKeepalive | null): OptionValues['keepalive'] & KeepaliveSettings {
  return {
    probes: valueOr(message?.keepalive_probes, LINUX_KEEPALIVE.probes),
    timeSeconds: valueOr(message?.keepalive_time, LINUX_KEEPALIVE.timeSeconds),
    intervalSeconds: valueOr(message?.keepalive_interval, LINUX_KEEPALIVE.intervalSeconds),
  };
}
