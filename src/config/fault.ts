// One complaint about configuration: what is wrong, at which field, in which file and line. Reading, rules
// and cross-field checks all speak in faults, so that an operator sees every one of them at once.
// Main thread; plain data; sent over a thread boundary by the library front end.

import { escapeControls } from '../base/control-characters.ts';

export type FaultSeverity = 'error' | 'warning';

export interface ConfigFault {
  /** Field path from the root message, `static_resources.clusters[2].name`; empty for the document itself. */
  readonly path: string;
  /** Offending value, rule and limit; lower case, no full stop. */
  readonly message: string;
  /** File name as the operator gave it, or `--config-yaml`; empty when the value came from nowhere. */
  readonly file: string;
  /** 1-based; 0 when unknown, as for the binary form. */
  readonly line: number;
  /** 1-based, in characters; 0 when unknown. */
  readonly column: number;
  readonly severity: FaultSeverity;
}

/**
 * The one-line form used in logs and on the terminal:
 * `envoy.yaml:12:7: static_resources.clusters[2].lb_policy: "RING" is not …`. Unknown parts are left out; control
 * characters, which keys and file names may hold, are escaped.
 */
export function formatFault(fault: ConfigFault): string {
  let text = '';
  if (fault.file !== '') {
    text = fault.file;
    if (fault.line > 0) text += `:${fault.line}`;
    if (fault.line > 0 && fault.column > 0) text += `:${fault.column}`;
    text += ': ';
  }
  if (fault.path !== '') text += `${fault.path}: `;
  return escapeControls(text + fault.message);
}

export function hasErrors(faults: readonly ConfigFault[]): boolean {
  return faults.some((fault) => fault.severity === 'error');
}
