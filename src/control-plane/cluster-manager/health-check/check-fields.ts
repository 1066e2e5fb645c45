// What the head of a check says beside its method and path.

import { utf8Bytes } from '../../../base/byte-text.ts';
import type { CheckHeaders } from '../../../snapshot/index.ts';

const USER_AGENT = 'weir/HC';

export type CheckField = readonly [name: string, value: string];

/** @param more what the protocol adds. @returns fields by their names in lower case, the host's among them; one character a byte. */
export function checkFields(
  { headersToAdd, headersToRemove }: CheckHeaders,
  authority: string,
  body: Buffer,
  more: readonly CheckField[] = [],
): readonly CheckField[] {
  const fields: readonly CheckField[] = [
    // A name of the configuration, which may hold any character; what else there is has been made bytes with it.
    ['host', utf8Bytes(authority)],
    ['user-agent', USER_AGENT],
    ...(body.length > 0 ? ([['content-length', `${body.length}`]] as const) : []),
    ...more,
  ];
  const removed = new Set(headersToRemove);
  let kept = fields.filter(([name]) => !removed.has(name));
  for (const { name, value, appends } of headersToAdd) {
    const others = appends ? kept : kept.filter(([other]) => other !== name);
    kept = [...others, [name, value]];
  }
  return kept;
}
