// What makes the line of an entry.

import type { LineFormat } from '../../snapshot/index.ts';
import type { FormatFacts } from '../format/facts.ts';
import { JsonFormatter } from '../format/json-formatter.ts';
import { escapeForLog } from '../format/quoted-bytes.ts';
import { TextFormatter } from '../format/text-formatter.ts';

const MISSING = '-';

/** A text ends where its format says; a JSON object ends with its line. The line is byte text. */
export function compileLine({ content, omitEmptyValues }: LineFormat): (facts: FormatFacts) => string {
  if (content.kind === 'json') {
    const formatter = new JsonFormatter(content.root, { isTyped: content.isTyped, omitEmptyValues });
    return (facts) => `${formatter.render(facts)}\n`;
  }
  const formatter = new TextFormatter(content.segments, {
    missing: omitEmptyValues ? '' : MISSING,
    transform: escapeForLog,
  });
  return (facts) => formatter.render(facts);
}
