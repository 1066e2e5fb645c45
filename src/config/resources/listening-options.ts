// What the sockets of a listener begin with, address by address: transparent, freebind, TCP Fast Open, and the socket
// options that are not for accepted sockets (socket-options.ts).

import type { Address } from '../../base/address.ts';
import { familyOf } from '../../base/address-families.ts';
import type { ListeningOptions, RawSocketOption } from '../../base/own-sockets.ts';
import type { ListenerSettings } from '../../snapshot/index.ts';
import type { FaultSink } from './fault-sink.ts';
import type { Listener, SocketOption } from './messages.ts';
import {
  type ConvertedSocketOption,
  convertRawOption,
  FREEBIND,
  optionsOf,
  TRANSPARENT,
} from './raw-socket-options.ts';
import { isForAccepted } from './socket-options.ts';
import { valueOr } from './units.ts';

/** TCP_FASTOPEN of Linux. */
const FAST_OPEN = { level: 6, name: 23 };

/** @param addresses by their places in the message; undefined for one that cannot be used. */
export function convertListeningOptions(
  message: Listener,
  addresses: readonly (Address | undefined)[],
  at: string,
  faults: FaultSink,
): Pick<ListenerSettings, 'listeningOptions'> {
  const common = message.socket_options.flatMap((option, index) =>
    isForAccepted(option) ? [] : convertOption(option, `${at}.socket_options[${index}]`, faults),
  );
  const converted = addresses.flatMap((address, index): (ListeningOptions | null)[] => {
    if (address === undefined) return [];
    const own = index === 0 ? null : message.additional_addresses[index - 1]!.socket_options;
    if (own === null) return [optionsAt(address, message, common, `${at}.socket_options`, faults)];
    const path = `${at}.additional_addresses[${index - 1}].socket_options.socket_options`;
    const options = own.socket_options.flatMap((option, n) => convertOption(option, `${path}[${n}]`, faults));
    return [optionsAt(address, message, options, path, faults)];
  });
  return converted.every((options) => options === null) ? {} : { listeningOptions: converted };
}

function convertOption(option: SocketOption, at: string, faults: FaultSink): ConvertedSocketOption[] {
  const converted = convertRawOption(option, at, faults);
  return converted === undefined ? [] : [converted];
}

/** @returns null for none. */
function optionsAt(
  address: Address,
  { transparent, freebind, tcp_fast_open_queue_length: fastOpen }: Listener,
  options: readonly ConvertedSocketOption[],
  optionsPath: string,
  faults: FaultSink,
): ListeningOptions | null {
  if (address.kind === 'pipe') {
    if (options.length > 0) faults.warning(optionsPath, `have no effect on the unix socket ${address.path}`);
    return null;
  }
  const family = familyOf(address.ip);
  const beforeBind: RawSocketOption[] = [
    ...(valueOr(transparent, false) ? [TRANSPARENT[family]] : []),
    ...(valueOr(freebind, false) ? [FREEBIND[family]] : []),
    ...optionsOf(options, family, 'prebind'),
  ];
  const afterBind = optionsOf(options, family, 'bound');
  const afterListen = [
    ...(fastOpen === null ? [] : [{ ...FAST_OPEN, value: fastOpen.value }]),
    ...optionsOf(options, family, 'listening'),
  ];
  const isNone = beforeBind.length + afterBind.length + afterListen.length === 0;
  return isNone ? null : { beforeBind, afterBind, afterListen };
}
