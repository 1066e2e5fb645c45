// A call in that part of an event loop's turn in which it takes in what has come on sockets. Any thread.
//
//   timers ─► POLL: sockets, messages, and the ticks behind each ─► Node's own immediates ─► those of scripts ─► timers …
//
// What Node puts off to its immediates, such as taking note of what the kernel has got of a TLS write, is done before anything more
// comes in for work that begins here, and only behind it for work that begins in an immediate of ours.

import { MessageChannel, type MessagePort } from 'node:worker_threads';

/**
 * @param callback must not throw, nor request the next call. It is called once in the next such part for any number of requests
 *   before it.
 * @returns what requests a call; that keeps no loop alive.
 */
export function atPoll(callback: () => void): () => void {
  let isRequested = false;
  let wake: MessagePort | null = null;
  const onMessage = (): void => {
    isRequested = false;
    callback();
  };
  return () => {
    if (isRequested) return;
    isRequested = true;
    wake ??= portTo(onMessage);
    wake.postMessage(null);
  };
}

function portTo(onMessage: () => void): MessagePort {
  const { port1, port2 } = new MessageChannel();
  port2.on('message', onMessage);
  port2.unref();
  return port1;
}
