// What a request that may be tried several times asks of its host, beside what the balancer goes by: not this one, not
// that priority. Made once per request, and only where it asks anything.

import type { Host } from './host.ts';
import type { DrawContext } from './load-balancer/pick-context.ts';

export interface HostSelection extends DrawContext {
  /** Written while a host is chosen. */
  draw: number;
  /** Hosts that are drawn per choice at most, 1 or more: the last is taken whatever it is. */
  readonly maxDraws: number;
  /** False: another host is drawn. */
  accepts(host: Host): boolean;
}
