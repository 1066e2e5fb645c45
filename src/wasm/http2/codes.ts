// Faults of header blocks by name. Those that HTTP/1 has too keep their names.

import * as layout from '../../../assembly/layout/http2.ts';
import { codecError } from '../http1/codes.ts';

const REASONS: Readonly<Record<number, string>> = {
  [layout.ERROR_COMPRESSION]: 'compression_invalid',
  [layout.ERROR_PSEUDO_LATE]: 'pseudo_header_late',
  [layout.ERROR_PSEUDO_REPEATED]: 'pseudo_header_repeated',
  [layout.ERROR_PSEUDO_UNKNOWN]: 'pseudo_header_unknown',
  [layout.ERROR_PSEUDO_MISSING]: 'pseudo_header_missing',
  [layout.ERROR_PSEUDO_EMPTY]: 'pseudo_header_empty',
  [layout.ERROR_SCHEME]: 'scheme_invalid',
  [layout.ERROR_PATH]: 'path_invalid',
  [layout.ERROR_STATUS]: 'status_invalid',
  [layout.ERROR_CONNECTION_FIELD]: 'connection_header_forbidden',
  [layout.ERROR_TE]: 'te_invalid',
  [layout.ERROR_UPPER_CASE]: 'header_name_upper_case',
  [layout.ERROR_VALUE_SPACE]: 'header_value_space',
  [layout.ERROR_AUTHORITY_AND_HOST]: 'authority_and_host_differ',
  [layout.ERROR_LENGTH_AND_END]: 'content_length_without_content',
  [layout.ERROR_PROTOCOL]: 'protocol_invalid',
  [layout.ERROR_INFORMATIONAL_END]: 'informational_ends_stream',
};

/** Codes of this module's own faults. */
export const HTTP2_FAULTS: readonly number[] = Object.keys(REASONS).map(Number);

/** Stable name of a negative result, for stats and details. */
export function blockFault(code: number): string {
  return REASONS[code] ?? codecError(code).reason;
}
