// DataSource message → its bytes. Files and variables of the environment are read once, while the configuration is loaded.

import { errorMessage } from '../../base/errors.ts';
import { readWholeFile } from '../../base/file-bytes.ts';
import { quote } from '../source/node.ts';
import type { Conversion } from './conversion.ts';
import type { FaultSink } from './fault-sink.ts';
import type { DataSource } from './messages.ts';

const NOTHING = new Uint8Array();
/** As much as a whole configuration may have. */
const MAX_BYTES = 32 * 1024 * 1024;

/** @returns no bytes when there is no source or it cannot be read; the latter is a fault. */
export function readDataSource(
  message: DataSource | null,
  at: string,
  { faults, environment = {} }: Pick<Conversion, 'faults' | 'environment'>,
): Uint8Array {
  switch (message?.specifier) {
    case 'inline_string':
      return Buffer.from(message.inline_string);
    case 'inline_bytes':
      return message.inline_bytes;
    case 'filename':
      return readFile(message.filename, `${at}.filename`, faults);
    case 'environment_variable': {
      const value = environment[message.environment_variable];
      if (value !== undefined) return Buffer.from(value);
      faults.error(`${at}.environment_variable`, `${quote(message.environment_variable)} is not set`);
      return NOTHING;
    }
    default:
      return NOTHING;
  }
}

function readFile(path: string, at: string, faults: FaultSink): Uint8Array {
  const { bytes, problem, error } = readWholeFile(path, MAX_BYTES);
  if (bytes !== undefined) return bytes;
  faults.error(at, problem === undefined ? `cannot be read: ${errorMessage(error)}` : `${quote(path)} ${problem}`);
  return NOTHING;
}
