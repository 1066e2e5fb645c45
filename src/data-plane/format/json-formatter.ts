// A JSON format, ready to be filled in: one object on one line. A string that is a single command keeps the type of
// its value when the format is typed; all other strings become text. Rendered as byte text, as a text format is.

import { utf8Bytes } from '../../base/byte-text.ts';
import type { FormatSegments, JsonFormat } from '../../snapshot/index.ts';
import type { FormatFacts } from './facts.ts';
import { jsonString } from './quoted-bytes.ts';
import { TextFormatter } from './text-formatter.ts';
import { compileCommand } from './values.ts';

export interface JsonOptions {
  readonly isTyped: boolean;
  readonly omitEmptyValues: boolean;
}

/** @returns JSON text, or undefined for what is to be left out. */
type WriteValue = (facts: FormatFacts) => string | undefined;

const MISSING = '-';

export class JsonFormatter {
  readonly #write: WriteValue;

  constructor(root: JsonFormat, options: JsonOptions) {
    this.#write = compileValue(root, options);
  }

  render(facts: FormatFacts): string {
    return this.#write(facts) ?? '{}';
  }
}

function compileValue(format: JsonFormat, options: JsonOptions): WriteValue {
  switch (format.kind) {
    case 'constant': {
      const text = JSON.stringify(format.value);
      return () => text;
    }
    case 'text':
      return compileText(format.segments, options);
    case 'list':
      return compileList(
        format.items.map((item) => compileValue(item, options)),
        options,
      );
    case 'object':
      return compileObject(format.entries, options);
  }
}

function compileText(segments: FormatSegments, options: JsonOptions): WriteValue {
  const [only] = segments;
  if (segments.length === 1 && typeof only === 'object') {
    const read = compileCommand(only);
    const missing = options.omitEmptyValues ? undefined : options.isTyped ? 'null' : `"${MISSING}"`;
    return (facts) => {
      const value = read(facts);
      if (value === undefined) return missing;
      if (typeof value === 'number') return options.isTyped ? String(value) : `"${value}"`;
      if (typeof value !== 'string') return options.isTyped ? value.text : jsonString(value.text);
      return jsonString(value);
    };
  }
  const formatter = new TextFormatter(segments, { missing: options.omitEmptyValues ? '' : MISSING });
  return (facts) => jsonString(formatter.render(facts));
}

function compileList(items: readonly WriteValue[], { omitEmptyValues }: JsonOptions): WriteValue {
  return (facts) => {
    const texts = items.map((write) => write(facts)).filter((text) => text !== undefined);
    return omitEmptyValues && texts.length === 0 ? undefined : `[${texts.join(',')}]`;
  };
}

function compileObject(
  entries: readonly (readonly [key: string, value: JsonFormat])[],
  options: JsonOptions,
): WriteValue {
  const members = entries.map(([key, value]) => ({
    key: `${utf8Bytes(JSON.stringify(key))}:`,
    write: compileValue(value, options),
  }));
  return (facts) => {
    let text = '';
    for (const { key, write } of members) {
      const value = write(facts);
      if (value !== undefined) text += (text === '' ? key : `,${key}`) + value;
    }
    return options.omitEmptyValues && text === '' ? undefined : `{${text}}`;
  };
}
