// What somebody wants of one type from a management server, as the exchange of that type is told of it: whoever asks for a name has the
// server asked for it, also where it has been asked before, so that nobody waits for an answer that has been given already. Main thread.

import type { Subscription, SubscriptionRequest } from '../subscription.ts';
import type { Exchange } from './exchange.ts';
import type { WatchedType } from './watched-type.ts';

export interface WantedType {
  readonly watched: WatchedType;
  readonly exchange: Exchange;
}

/**
 * @param onStart told once, before the first request is due. @param onDue told that something is to be said to the server.
 * @returns one that is still to be started.
 */
export function subscribeTo<Resource>(
  { watched, exchange }: WantedType,
  request: SubscriptionRequest<Resource>,
  onStart: () => void,
  onDue: () => void,
): Subscription {
  const watch = request as unknown as SubscriptionRequest<unknown>;
  const asked = new Set<string>();
  return {
    ask: (name) => {
      if (!asked.has(name)) watched.ask(name);
      asked.add(name);
      exchange.came([name]);
      onDue();
    },
    unask: (name) => {
      if (!asked.delete(name)) return;
      watched.unask(name);
      exchange.went();
      onDue();
    },
    start: () => {
      watched.add(watch);
      exchange.came(watch.names);
      onStart();
      onDue();
    },
    close: () => {
      watched.remove(watch);
      for (const name of asked) watched.unask(name);
      asked.clear();
      exchange.went();
      onDue();
    },
  };
}
