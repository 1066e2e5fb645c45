// The rule that network filter chains and HTTP filter chains share: traffic must end somewhere. Exactly the
// last filter is terminal, because nothing behind a terminal filter would ever run.

import { quote } from '../source/node.ts';
import type { FaultSink } from './fault-sink.ts';

export interface ChainMember {
  readonly name: string;
  /** Undefined for a filter that this build lacks: it is refused as such, and nothing is known of it. */
  readonly isTerminal: boolean | undefined;
}

/** @param at path of the list; @param terminals what an operator could put last, for the message. */
export function checkTerminalFilter(
  members: readonly ChainMember[],
  at: string,
  terminals: string,
  faults: FaultSink,
): void {
  if (members.length === 0) {
    faults.error(at, `needs at least one filter; the last must be ${terminals}`);
    return;
  }
  for (const [index, { name, isTerminal }] of members.entries()) {
    const isLast = index === members.length - 1;
    if (isTerminal && !isLast) {
      faults.error(`${at}[${index}]`, `terminal filter ${quote(name)} must be the last of its chain`);
    }
    if (isTerminal === false && isLast) {
      faults.error(`${at}[${index}]`, `${quote(name)} is not terminal; the last filter must be ${terminals}`);
    }
  }
}
