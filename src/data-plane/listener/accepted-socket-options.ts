// What a listener sets on every socket that it accepts. Most listeners set nothing, and pay for nothing.

import type { Socket } from 'node:net';
import type { AcceptedSocketOptions } from '../../snapshot/index.ts';

/** Linux' default, for when the probes are set but not the time before the first. */
const DEFAULT_KEEPALIVE_TIME_SECONDS = 7200;

export type SocketOptionSetter = (socket: Socket) => void;

/** @returns undefined when there is nothing to set. */
export function socketOptionSetter(options: AcceptedSocketOptions): SocketOptionSetter | undefined {
  const { noDelay, keepalive, typeOfService } = options;
  if (noDelay && keepalive === undefined && typeOfService === 0) return undefined;
  const keepaliveOptions = keepalive && {
    enable: true,
    initialDelay: (keepalive.timeSeconds ?? DEFAULT_KEEPALIVE_TIME_SECONDS) * 1000,
    ...(keepalive.intervalSeconds === undefined ? {} : { interval: keepalive.intervalSeconds * 1000 }),
    ...(keepalive.probes === undefined ? {} : { count: keepalive.probes }),
  };
  return (socket) => {
    if (!noDelay) socket.setNoDelay(false);
    if (keepaliveOptions !== undefined) socket.setKeepAlive(keepaliveOptions);
    if (typeOfService !== 0) socket.setTypeOfService(typeOfService);
  };
}
