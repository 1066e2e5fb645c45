// What is odd of a resource that has been read, in the log. Main thread.

import type { DiscoveredResource } from '../../config/index.ts';
import type { Logger } from '../../log/index.ts';

/** @param what kind and name, as refusals have them: `listener web`. */
export function logWarnings(
  what: string,
  { name, warnings }: Pick<DiscoveredResource<unknown>, 'name' | 'warnings'>,
  log: Logger,
): void {
  for (const warning of warnings) log.warning(name === '' ? warning : `${what}: ${warning}`);
}
