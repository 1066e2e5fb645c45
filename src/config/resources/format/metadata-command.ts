// The arguments of the operators for metadata: `METADATA(CLUSTER:namespace:key:key)`, and the operators whose names say
// already whose metadata they mean, `CLUSTER_METADATA(namespace:key)`. Header values may also have the older form
// `UPSTREAM_METADATA(["namespace", "key"])`.

import type { FormatCommand, MetadataSource } from '../../../snapshot/index.ts';
import { quote } from '../../source/node.ts';
import { METADATA_SOURCES } from './operators.ts';

type Parsed = FormatCommand | { readonly error: string };

/** @param source undefined when the first argument names it. */
export function metadataCommand(
  name: string,
  source: MetadataSource | undefined,
  argument: string,
  maxLength: number,
): Parsed {
  const given = argumentsOf(argument);
  if (given === undefined) return { error: `${name}(${argument}): a list must be one of strings` };
  const args = source === undefined ? given : [source, ...given];
  const [whose = '', namespace] = args;
  if (!METADATA_SOURCES.some((known) => known === whose)) {
    return { error: `${name} needs one of ${METADATA_SOURCES.join(', ')} first, not ${quote(whose)}` };
  }
  if (!namespace) return { error: `${name} needs the namespace of the metadata` };
  return { operator: 'METADATA', args, maxLength };
}

/** @returns undefined for a list that is none. */
function argumentsOf(argument: string): readonly string[] | undefined {
  if (argument === '') return [];
  // The configuration is byte text here; names are compared with those of messages.
  const text = Buffer.from(argument, 'latin1').toString();
  if (!text.startsWith('[')) return text.split(':');
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every((item) => typeof item === 'string') ? list : undefined;
  } catch {
    return undefined;
  }
}
