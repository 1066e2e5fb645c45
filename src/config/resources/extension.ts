// Extensions are messages inside an Any. The conversions ask for the message and its canonical name and
// never see bytes, type URLs or spellings of either generation.

import { unpackAny } from '../proto/any.ts';
import type { Any } from './messages.ts';

export interface OpenedExtension {
  /** Full name in the canonical spelling, `proxy.extensions.filters.http.router.v3.Router`. */
  readonly typeName: string;
  readonly message: object;
}

/** @returns undefined when there is no content, its type is unknown or its bytes are damaged. */
export function openExtension(any: Any | null): OpenedExtension | undefined {
  const content = any === null ? undefined : unpackAny(any);
  return content && { typeName: content.type.fullName.slice(1), message: content.message };
}
