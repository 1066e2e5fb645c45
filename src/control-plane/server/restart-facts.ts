// What the server is told of hot restarts: which one in the row it is, and what the process before it holds while that drains.

import type { Address } from '../../base/address.ts';
import type { TicketSecret } from '../listener-manager/ticket-secret.ts';

export interface ParentLoad {
  readonly connections: number;
  readonly memoryBytes: number;
}

export interface RestartFacts {
  readonly epoch: number;
  /** How many processes have followed one another. */
  readonly generation: number;
  /** From the start of the first process to that of this one. */
  readonly earlierMs: number;
  /** Nothing once the process before is gone. */
  readonly parentLoad: () => ParentLoad;
  /** Descriptors of the sockets that the process before has on an address, which become this one's; absent without one. */
  readonly inherit?: (address: Address) => Promise<readonly number[]>;
  /** The server's own when absent. */
  readonly ticketSecret?: TicketSecret;
}

/** Of a process that follows no other. */
export const FIRST_OF_ALL: RestartFacts = {
  epoch: 0,
  generation: 1,
  earlierMs: 0,
  parentLoad: () => ({ connections: 0, memoryBytes: 0 }),
};
