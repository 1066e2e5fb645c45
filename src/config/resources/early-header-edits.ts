// early_header_mutation_extensions → edits of requests before routes, filters and the proxy itself read them.

import type { HeaderEdits } from '../../snapshot/index.ts';
import type { Conversion } from './conversion.ts';
import { openExtension } from './extension.ts';
import { convertHeaderMutations } from './header-edits.ts';
import type { EarlyHeaderMutation, HttpConnectionManager } from './messages.ts';

const HEADER_MUTATION = 'proxy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation';

/** @param at path of the connection manager. @returns nothing where there are none, to be spread into settings. */
export function convertEarlyHeaderEdits(
  message: HttpConnectionManager,
  at: string,
  conversion: Conversion,
): { readonly earlyHeaderEdits?: readonly HeaderEdits[] } {
  const earlyHeaderEdits = message.early_header_mutation_extensions.flatMap(({ typed_config }, index) => {
    const opened = openExtension(typed_config);
    // What this build lacks has been refused by the support table.
    if (opened?.typeName !== HEADER_MUTATION) return [];
    const { mutations } = opened.message as EarlyHeaderMutation;
    const place = `${at}.early_header_mutation_extensions[${index}].typed_config.mutations`;
    return convertHeaderMutations(mutations, place, conversion);
  });
  return earlyHeaderEdits.length === 0 ? {} : { earlyHeaderEdits };
}
