// DataSource messages of TLS contexts as sources, and their bytes. Nothing of those appears in a fault.

import { errorMessage } from '../../../base/errors.ts';
import { readWholeFile } from '../../../base/file-bytes.ts';
import type { TlsSource } from '../../../snapshot/index.ts';
import { quote } from '../../source/node.ts';
import type { Conversion } from '../conversion.ts';
import type { FaultSink } from '../fault-sink.ts';
import type { DataSource } from '../messages.ts';

/** More than any list of authorities; what is larger is no such file, and would be held in memory by every thread. */
const MAX_BYTES = 16 * 1024 * 1024;

/** @returns null when there is none; a variable of the environment is read here, once. */
export function convertSource(
  message: DataSource | null,
  at: string,
  { faults, trail, environment = {} }: Pick<Conversion, 'faults' | 'trail' | 'environment'>,
): TlsSource | null {
  switch (message?.specifier) {
    case 'filename':
      trail?.note(message.filename, message.watched_directory);
      return { kind: 'file', path: message.filename };
    case 'inline_string':
      return { kind: 'inline', bytes: Buffer.from(message.inline_string) };
    case 'inline_bytes':
      return { kind: 'inline', bytes: message.inline_bytes };
    case 'environment_variable': {
      const value = environment[message.environment_variable];
      if (value !== undefined) return { kind: 'inline', bytes: Buffer.from(value) };
      faults.error(`${at}.environment_variable`, `${quote(message.environment_variable)} is not set`);
      return null;
    }
    default:
      return null;
  }
}

/** @returns null for no source, and after a fault. */
export function readSource(source: TlsSource | null, at: string, faults: FaultSink): Buffer | null {
  if (source === null) return null;
  if (source.kind === 'inline') return Buffer.from(source.bytes);
  const { bytes, problem, error } = readWholeFile(source.path, MAX_BYTES);
  if (bytes !== undefined) return bytes;
  faults.error(at, `${quote(source.path)} ${problem ?? `cannot be read: ${errorMessage(error)}`}`);
  return null;
}

/** Its file in quotes, for a fault. */
export function sourceName(source: TlsSource | null): string {
  return source?.kind === 'file' ? quote(source.path) : 'the value';
}
