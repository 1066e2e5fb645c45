// POST /logging: lists the loggers, after changing all, one or several of them. Either every named logger
// changes or none.

import { findLevel, LOG_LEVELS, type Loggers, type LogLevel } from '../../log/index.ts';
import { type AdminContext, type AdminResponse, type EndpointParameter, textResponse } from '../endpoint.ts';
import type { AdminQuery } from '../query.ts';

export const LOGGING_PARAMETERS: readonly EndpointParameter[] = [
  { id: 'paths', kind: 'text', help: 'Set several loggers: name1=level1,name2=level2' },
  { id: 'level', kind: 'choice', choices: ['', ...LOG_LEVELS], help: 'Set all loggers' },
];

const USAGE = `usage: /logging?<name>=<level> (change single level)
usage: /logging?paths=name1:level1,name2:level2,... (change multiple levels)
usage: /logging?level=<level> (change all levels)
levels: ${LOG_LEVELS.join(' ')} 
`;

/** What to change: every logger, or those named. */
type Change =
  | { readonly all: LogLevel }
  | { readonly each: readonly (readonly [name: string, level: LogLevel])[] }
  | { readonly error: string };

export function handleLogging({ loggers }: AdminContext, query: AdminQuery): AdminResponse {
  const changes = query.pairs.filter(([, value]) => value !== '');
  if (changes.length > 1) return refuse(loggers, 'invalid number of parameters');
  const [name, value] = changes[0] ?? [];
  const error = name === undefined || value === undefined ? undefined : apply(loggers, readChange(name, value));
  return error === undefined ? textResponse(loggerList(loggers)) : refuse(loggers, error);
}

function readChange(name: string, value: string): Change {
  if (name === 'paths') return readPaths(value);
  const level = findLevel(value);
  if (level === undefined) return { error: 'unknown logger level' };
  return name === 'level' ? { all: level } : { each: [[name, level]] };
}

/** @param paths `name=level,name:level`. */
function readPaths(paths: string): Change {
  const each: [string, LogLevel][] = [];
  for (const path of paths.split(',')) {
    const [, name, levelName] = /^([^=:]+)[=:]([^=:]+)$/.exec(path) ?? [];
    if (name === undefined || levelName === undefined) return { error: 'empty logger name or empty logger level' };
    const level = findLevel(levelName);
    if (level === undefined) return { error: 'unknown logger level' };
    each.push([name, level]);
  }
  return { each };
}

/** @returns the error, or undefined when done. */
function apply(loggers: Loggers, change: Change): string | undefined {
  if ('error' in change) return change.error;
  const log = loggers.get('admin');
  if ('all' in change) {
    log.info(`change all log levels: level='${change.all}'`);
    loggers.setAll(change.all);
    return undefined;
  }
  if (loggers.set(change.each) !== undefined) return 'unknown logger name';
  for (const [name, level] of change.each) log.info(`change log level: name='${name}' level='${level}'`);
  return undefined;
}

function loggerList(loggers: Loggers): string {
  const lines = loggers.list().map(({ name, level }) => `  ${name}: ${level}\n`);
  return `active loggers:\n${lines.join('')}\n`;
}

function refuse(loggers: Loggers, error: string): AdminResponse {
  return textResponse(`error: ${error}\n\n${USAGE}${loggerList(loggers)}`, 400);
}
