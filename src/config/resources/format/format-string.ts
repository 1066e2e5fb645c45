// Format strings → segments: `[%START_TIME%] "%REQ(X-ORIGINAL-PATH?:PATH):100%"`.
//
//   %OPERATOR%   %OPERATOR(argument)%   %OPERATOR(argument):length%   %% for one percent sign
//
// Texts are byte texts, one character per byte of their UTF-8, as they are written in the end. What can be known
// beforehand is settled here: HOSTNAME and ENVIRONMENT become literal text.

import { hostname } from 'node:os';
import { nearestName } from '../../../base/nearest-name.ts';
import type { FormatCommand, FormatOperator, FormatSegment, FormatSegments } from '../../../snapshot/index.ts';
import { quote } from '../../source/node.ts';
import { metadataCommand } from './metadata-command.ts';
import {
  ABSENT_OPERATORS,
  METADATA_OPERATORS,
  MOMENTS,
  OPERATORS,
  PRECISIONS,
  SETTLED_OPERATORS,
} from './operators.ts';

export type ParsedFormat =
  | { readonly segments: FormatSegments; readonly error?: undefined }
  | { readonly segments?: undefined; readonly error: string };

/** Where ENVIRONMENT finds its values. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** An argument may hold percent signs (those of a time) and ends at the first `)` that a command can end behind. */
const COMMAND = /%([A-Z0-9_]+)(?:\((.*?)\))?(?::([0-9]+))?%/sy;
const NAMES: readonly string[] = [
  ...Object.keys(OPERATORS),
  ...METADATA_OPERATORS.keys(),
  ...ABSENT_OPERATORS,
  ...Object.keys(SETTLED_OPERATORS),
];
/** Operators of an extension that other builds have. */
const EXPRESSIONS: ReadonlySet<string> = new Set(['CEL', 'TYPED_CEL']);
const MISSING = '-';
const STYLES: readonly string[] = ['CAMEL_STRING', 'SNAKE_STRING', 'NUMBER'];
const PATH_EXTENTS: readonly string[] = ['WQ', 'NQ'];
const QUERY_FORMS: readonly string[] = ['ORIG', 'DECODED'];
const PATH_SOURCES: readonly string[] = ['ORIG_OR_PATH', 'ORIG', 'PATH'];
const SERVER_PLACES: readonly string[] = ['SNI_ONLY', 'SNI_FIRST', 'HOST_FIRST'];
const HOST_SOURCES: readonly string[] = ['ORIG_OR_HOST', 'ORIG', 'HOST'];

/** A command, literal text, or what is wrong. */
type Settled = FormatSegment | { readonly error: string };

/**
 * @param text byte text.
 * @returns the segments, or what is wrong with the text, naming the operator.
 */
export function parseFormat(text: string, environment: Environment = {}): ParsedFormat {
  const segments: FormatSegment[] = [];
  let literal = '';
  let at = 0;
  while (at < text.length) {
    const percent = text.indexOf('%', at);
    if (percent === -1) break;
    literal += text.slice(at, percent);
    if (text[percent + 1] === '%') {
      literal += '%';
      at = percent + 2;
      continue;
    }
    COMMAND.lastIndex = percent;
    const match = COMMAND.exec(text);
    if (match === null) return { error: `no command at position ${percent + 1}: a single '%' is written '%%'` };
    at = COMMAND.lastIndex;
    const settled = settle(match[1]!, match[2], Number(match[3] ?? 0), environment);
    if (typeof settled === 'string') literal += settled;
    else if ('error' in settled) return settled;
    else {
      if (literal !== '') segments.push(literal);
      literal = '';
      segments.push(settled);
    }
  }
  literal += text.slice(at);
  if (literal !== '') segments.push(literal);
  return { segments };
}

function settle(name: string, argument: string | undefined, maxLength: number, environment: Environment): Settled {
  if (name === 'HOSTNAME') return truncated(hostname(), maxLength);
  if (name === 'ENVIRONMENT') {
    if (!argument) return { error: 'ENVIRONMENT needs the name of a variable in parentheses' };
    return truncated(environment[argument] || MISSING, maxLength);
  }
  const metadataSource = METADATA_OPERATORS.get(name);
  if (metadataSource !== undefined) return metadataCommand(name, metadataSource, argument ?? '', maxLength);
  if (ABSENT_OPERATORS.has(name)) return { operator: 'ABSENT', args: [], maxLength };
  if (EXPRESSIONS.has(name)) return { error: `${name} is not supported by this build: there is no CEL` };
  if (!Object.hasOwn(OPERATORS, name)) {
    const near = nearestName(name, NAMES);
    return { error: `unknown command operator ${quote(name)}${near === undefined ? '' : `; did you mean ${near}?`}` };
  }
  return command(name as FormatOperator, argument, maxLength);
}

function command(
  operator: FormatOperator,
  argument: string | undefined,
  maxLength: number,
): FormatCommand | { readonly error: string } {
  switch (OPERATORS[operator].argument) {
    case 'none':
      if (argument) return { error: `${operator} takes no argument` };
      return { operator, args: [], maxLength };
    case 'time':
      return { operator, args: argument ? [argument] : [], maxLength };
    case 'name':
      if (!argument) return { error: `${operator} needs a name in parentheses` };
      return { operator, args: [argument], maxLength };
    case 'style':
      return styleCommand(operator, argument || 'CAMEL_STRING', maxLength);
    case 'query':
      return queryCommand(operator, argument || 'ORIG', maxLength);
    case 'path':
      return twofoldCommand(operator, argument ?? '', [PATH_EXTENTS, PATH_SOURCES], maxLength);
    case 'server':
      return twofoldCommand(operator, argument ?? '', [SERVER_PLACES, HOST_SOURCES], maxLength);
    case 'duration':
      return durationCommand(operator, argument ?? '', maxLength);
    case 'state':
      return stateCommand(operator, argument ?? '', maxLength);
    case 'metadata':
      return metadataCommand(operator, undefined, argument ?? '', maxLength);
    case 'header':
      return headerCommand(operator, argument ?? '', maxLength);
  }
}

function styleCommand(
  operator: FormatOperator,
  style: string,
  maxLength: number,
): FormatCommand | { readonly error: string } {
  if (STYLES.includes(style)) return { operator, args: [style], maxLength };
  return { error: `${operator} knows the styles ${STYLES.join(', ')}, not ${quote(style)}` };
}

function queryCommand(
  operator: FormatOperator,
  form: string,
  maxLength: number,
): FormatCommand | { readonly error: string } {
  if (QUERY_FORMS.includes(form)) return { operator, args: [form], maxLength };
  return { error: `${operator} knows ${QUERY_FORMS.join(' and ')}, not ${quote(form)}` };
}

/** `EXTENT:SOURCE`, of which either may be left out. @param words of each, that which an absent one stands for first. */
function twofoldCommand(
  operator: FormatOperator,
  argument: string,
  [extents, sources]: readonly [readonly string[], readonly string[]],
  maxLength: number,
): FormatCommand | { readonly error: string } {
  const [extent = '', source = '', ...more] = argument.split(':');
  if (more.length > 0) return { error: `${operator}(${argument}): takes two arguments at most` };
  if (extent !== '' && !extents.includes(extent)) {
    return { error: `${operator} knows ${extents.join(', ')} first, not ${quote(extent)}` };
  }
  if (source !== '' && !sources.includes(source)) {
    return { error: `${operator} knows ${sources.join(', ')} behind that, not ${quote(source)}` };
  }
  return { operator, args: [extent || extents[0]!, source || sources[0]!], maxLength };
}

/** `START:END:PRECISION`. */
function durationCommand(
  operator: FormatOperator,
  argument: string,
  maxLength: number,
): FormatCommand | { readonly error: string } {
  const args = argument.split(':');
  const [start = '', end = '', precision = ''] = args;
  if (args.length !== 3) return { error: `${operator} needs two moments and a precision: START:END:PRECISION` };
  const unknown = [start, end].find((name) => !Object.hasOwn(MOMENTS, name));
  if (unknown !== undefined) {
    return { error: `${operator} knows the moments ${Object.keys(MOMENTS).join(', ')}, not ${quote(unknown)}` };
  }
  if (!PRECISIONS.some((known) => known === precision)) {
    return { error: `${operator} knows the precisions ${PRECISIONS.join(', ')}, not ${quote(precision)}` };
  }
  return { operator, args, maxLength };
}

/** `NAME`, `NAME:TYPED` or `NAME:PLAIN`; names may hold colons. */
function stateCommand(
  operator: FormatOperator,
  argument: string,
  maxLength: number,
): FormatCommand | { readonly error: string } {
  const [, name = '', style = 'TYPED'] = /^(.*?)(?::(TYPED|PLAIN))?$/s.exec(argument) ?? [];
  if (name === '') return { error: `${operator} needs a name in parentheses` };
  if (/:FIELD(:|$)/.test(name)) return { error: `${operator}(${argument}): texts have no fields; use PLAIN` };
  return { operator, args: [name, style], maxLength };
}

/** `NAME` or `NAME?FALLBACK`; a name is a header's or a pseudo-header's, in any case. */
function headerCommand(
  operator: FormatOperator,
  argument: string,
  maxLength: number,
): FormatCommand | { readonly error: string } {
  const args = argument.toLowerCase().split('?');
  if (args.length > 2) return { error: `${operator}(${argument}): at most one fallback can be given` };
  const wrong = args.find((name) => !/^:?[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name));
  if (wrong !== undefined) return { error: `${operator} needs a header name, not ${quote(wrong)}` };
  return { operator, args, maxLength };
}

function truncated(text: string, maxLength: number): string {
  const value = Buffer.from(text).toString('latin1');
  return maxLength === 0 ? value : value.slice(0, maxLength);
}
