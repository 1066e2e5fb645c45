// Whether a message may be transformed on its way (RFC 9111 section 5.2.2.6).

import type { EditableHead } from '../../data-plane/index.ts';

export function forbidsTransform(head: EditableHead): boolean {
  const directives = head.headerByName('cache-control');
  return directives?.split(',').some((directive) => directive.trim().toLowerCase() === 'no-transform') ?? false;
}
