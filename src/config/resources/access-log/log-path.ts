// Paths of access logs. This folder knows no file system beyond what it reads; whoever loads looks at it for us.

import { quote } from '../../source/node.ts';
import type { FaultSink } from '../fault-sink.ts';

export interface LogPathLook {
  /**
   * Why a log cannot be written to a path, `permission denied`; undefined when it can. Leaves no trace. Every path
   * passes when absent.
   */
  readonly findLogPathFault?: ((path: string) => string | undefined) | undefined;
}

/** Reports a path that no log can be written to: otherwise that is found out when the first entry is. */
export function checkLogPath(path: string, at: string, { findLogPathFault }: LogPathLook, faults: FaultSink): void {
  // An empty path has already broken a field rule, or means none.
  const reason = path === '' ? undefined : findLogPathFault?.(path);
  if (reason !== undefined) faults.error(at, `${quote(path)} cannot be written: ${reason}`);
}
