// The access logs of one listener or filter, compiled from its snapshot. Each stream or connection passes here once,
// at its end; a filter decides, a format makes the entry, a file takes it.

import type { AccessLogSettings, LineFormat } from '../../snapshot/index.ts';
import { escapeForLog } from '../format/byte-text.ts';
import type { FormatFacts } from '../format/facts.ts';
import { JsonFormatter } from '../format/json-formatter.ts';
import { TextFormatter } from '../format/text-formatter.ts';
import type { WorkerContext } from '../worker-context.ts';
import { compileFilter, type PassesFilter } from './filter.ts';
import type { LogFile } from './log-file.ts';

interface Entry {
  readonly passes: PassesFilter | null;
  readonly line: (facts: FormatFacts) => string;
  readonly file: LogFile;
}

const MISSING = '-';

export class AccessLog {
  readonly #entries: readonly Entry[];

  private constructor(entries: readonly Entry[]) {
    this.#entries = entries;
  }

  /** @returns null without settings: then nothing needs to be noted for logs. */
  static compile(context: WorkerContext, settings: readonly AccessLogSettings[]): AccessLog | null {
    if (settings.length === 0) return null;
    return new AccessLog(
      settings.map(({ destination, format, filter }) => ({
        passes: filter === null ? null : compileFilter(filter, context.random, context.runtime),
        line: compileLine(format),
        file: context.logFiles.file(destination),
      })),
    );
  }

  write(facts: FormatFacts): void {
    for (const { passes, line, file } of this.#entries) {
      if (passes === null || passes(facts)) file.write(line(facts));
    }
  }
}

/** A text ends where its format says; a JSON object ends with its line. */
function compileLine({ content, omitEmptyValues }: LineFormat): (facts: FormatFacts) => string {
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
