// What the home page of the admin interface warns of the places that resources come from: those that are not there.

import type { TroubleView } from '../admin/index.ts';
import type { SourceReport } from '../control-plane/index.ts';

/** Several of one server, for several types, have one trouble. */
export function sourceTroubles(sources: Iterable<SourceReport>): TroubleView[] {
  const texts = new Set<string>();
  for (const { kind, name, isConnected, complaint } of sources) {
    if (isConnected || complaint === '') continue;
    texts.add(kind === 'file' ? `resources of ${name} are not read: ${complaint}` : complaint);
  }
  return [...texts].map((text) => ({ isGrave: false, text }));
}
