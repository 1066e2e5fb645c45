// Reads a TypeScript file just far enough for the architecture rules: what it imports, and its code without comments
// and string contents. TypeScript 7 has no compiler API that could be asked instead.

export interface ImportStatement {
  readonly specifier: string;
  /** True when only types are imported, so that nothing is loaded when the program runs. */
  readonly typesOnly: boolean;
  readonly line: number;
}

export interface SourceText {
  readonly imports: readonly ImportStatement[];
  /** The code, line by line as in the file, comments blanked and string literals emptied. */
  readonly code: string;
}

/** A slash after one of these begins a regular expression, not a division. */
const BEFORE_REGEX = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|do|else|void|delete|await|yield))$/;
const IMPORT = /\b(?:import|export)\s+((?:type\s+)?(?:[\w*$\s,]|\{[^{}]*\})*?)\s*from\s*"(\d+)"/g;
const BARE_IMPORT = /\bimport\s*\(?\s*"(\d+)"/g;

export function readSourceText(text: string): SourceText {
  const strings: string[] = [];
  const marked = markStrings(text, strings);
  const imports = [...importsFrom(marked, strings), ...bareImports(marked, strings)];
  return { imports: imports.sort((a, b) => a.line - b.line), code: marked.replace(/"\d+"/g, '""') };
}

function* importsFrom(marked: string, strings: readonly string[]): Generator<ImportStatement> {
  for (const match of marked.matchAll(IMPORT)) {
    yield {
      specifier: strings[Number(match[2])]!,
      typesOnly: namesOnlyTypes(match[1]!),
      line: lineAt(marked, match.index),
    };
  }
}

function* bareImports(marked: string, strings: readonly string[]): Generator<ImportStatement> {
  for (const match of marked.matchAll(BARE_IMPORT)) {
    yield { specifier: strings[Number(match[1])]!, typesOnly: false, line: lineAt(marked, match.index) };
  }
}

/** `type { A }`, `type A`, `{ type A, type B }`. */
function namesOnlyTypes(clause: string): boolean {
  if (/^type\s/.test(clause)) return true;
  const braces = /^\{([^{}]*)\}$/.exec(clause.trim());
  const names =
    braces?.[1]
      ?.split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '') ?? [];
  return names.length > 0 && names.every((name) => name.startsWith('type '));
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

/** Blanks comments, empties regular expressions and templates, and turns each string into `"n"`, its place in `strings`. */
function markStrings(text: string, strings: string[]): string {
  let out = '';
  let at = 0;
  /** Depth of braces at which each open template goes on; the innermost comes last. */
  const templates: number[] = [];
  let depth = 0;
  while (at < text.length) {
    const char = text[at]!;
    const pair = text.slice(at, at + 2);
    let end = at + 1;
    if (pair === '//') {
      end = indexOrEnd(text, '\n', at);
    } else if (pair === '/*') {
      end = indexOrEnd(text, '*/', at + 2) + 2;
      out += newlinesOf(text.slice(at, end)) || ' ';
    } else if (char === "'" || char === '"') {
      end = endOfQuoted(text, at, char);
      out += `"${strings.push(text.slice(at + 1, end - 1)) - 1}"`;
    } else if (char === '`' || (char === '}' && templates.at(-1) === depth)) {
      if (char === '}') templates.pop();
      end = endOfTemplatePart(text, at + 1);
      out += newlinesOf(text.slice(at, end)) || ' ';
      if (text[end - 1] === '{') templates.push(depth);
    } else if (char === '/' && BEFORE_REGEX.test(out.trimEnd().slice(-10))) {
      end = endOfRegex(text, at);
      out += '""';
    } else {
      if (char === '{') depth += 1;
      if (char === '}') depth -= 1;
      out += char;
    }
    at = end;
  }
  return out;
}

function indexOrEnd(text: string, sought: string, from: number): number {
  const index = text.indexOf(sought, from);
  return index === -1 ? text.length : index;
}

function newlinesOf(text: string): string {
  return text.replace(/[^\n]/g, '');
}

function endOfQuoted(text: string, start: number, quote: string): number {
  let at = start + 1;
  while (at < text.length && text[at] !== quote) at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** Just after the closing backtick, or after the `${` that interrupts the template. */
function endOfTemplatePart(text: string, start: number): number {
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '`') return at + 1;
    else if (text[at] === '$' && text[at + 1] === '{') return at + 2;
  }
  return text.length;
}

function endOfRegex(text: string, start: number): number {
  let inClass = false;
  for (let at = start + 1; at < text.length; at += 1) {
    const char = text[at];
    if (char === '\\') at += 1;
    else if (char === '[') inClass = true;
    else if (char === ']') inClass = false;
    else if (char === '/' && !inClass) return at + 1;
    else if (char === '\n') return at;
  }
  return text.length;
}
