// Bodies of replies of the proxy's own that a format words, ready to be filled in. Made once per snapshot.

import type { ReplyFormat } from '../../snapshot/index.ts';
import type { FormatFacts } from '../format/facts.ts';
import { JsonFormatter } from '../format/json-formatter.ts';
import { TextFormatter } from '../format/text-formatter.ts';

const MISSING = '-';

export interface BodyFormat {
  readonly contentType: string;
  /** Makes byte text. */
  readonly render: (facts: FormatFacts) => string;
}

export function compileBodyFormat(format: ReplyFormat | null): BodyFormat | null {
  if (format === null) return null;
  const { line, contentType } = format;
  const { content, omitEmptyValues } = line;
  if (content.kind === 'json') {
    const formatter = new JsonFormatter(content.root, { isTyped: content.isTyped, omitEmptyValues });
    return { contentType, render: (facts) => `${formatter.render(facts)}\n` };
  }
  const formatter = new TextFormatter(content.segments, { missing: omitEmptyValues ? '' : MISSING });
  return { contentType, render: (facts) => formatter.render(facts) };
}
