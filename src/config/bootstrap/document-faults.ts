// Gives faults found on messages their place in the sources, and leaves out those that only follow from a
// value that could not be read: a field that is unset because its text was wrong is not "required" as well.

import type { ConfigFault, FaultSeverity } from '../fault.ts';
import type { FaultList } from '../fault-list.ts';
import type { FaultSink } from '../resources/fault-sink.ts';
import type { ConfigDocument } from '../source/config-document.ts';
import { formatPath, parsePath } from '../source/field-path.ts';

export class DocumentFaults implements FaultSink {
  readonly #document: ConfigDocument;
  readonly #list: FaultList;
  /** Fields that could not be read, and the messages directly around them. */
  readonly #unread = new Set<string>();
  readonly #aroundUnread = new Set<string>();

  constructor(document: ConfigDocument, list: FaultList) {
    this.#document = document;
    this.#list = list;
    for (const { path, severity } of list.all) if (severity === 'error') this.#noteUnread(path);
  }

  error(at: string, message: string): void {
    this.#add(at, message, 'error');
  }

  warning(at: string, message: string): void {
    this.#add(at, message, 'warning');
  }

  #add(at: string, message: string, severity: FaultSeverity): void {
    const fault = this.#document.fault(at, message, severity);
    // The reader's paths are spelt as in the source, so they can only be compared with the fault's.
    if (this.#unread.size === 0 || !this.#followsFromUnread(fault.path)) this.#list.add(fault);
  }

  #noteUnread(path: string): void {
    this.#unread.add(path);
    this.#aroundUnread.add(parentPath(path));
  }

  /** At an unread field, inside it, or about the message that lacks it now. */
  #followsFromUnread(at: string): boolean {
    if (this.#aroundUnread.has(at)) return true;
    for (let path = at; path !== ''; path = parentPath(path)) if (this.#unread.has(path)) return true;
    return false;
  }
}

function parentPath(path: string): string {
  return formatPath(parsePath(path).slice(0, -1));
}

/**
 * By place in the sources, those without a line first; faults at one place stay in the order found.
 * @param files the sources in the order in which they are merged; what belongs to none of them comes last.
 */
export function inSourceOrder(faults: readonly ConfigFault[], files: readonly string[]): readonly ConfigFault[] {
  const rank = ({ file }: ConfigFault): number => (files.includes(file) ? files.indexOf(file) : files.length);
  return faults.toSorted((a, b) => rank(a) - rank(b) || a.line - b.line || a.column - b.column);
}
