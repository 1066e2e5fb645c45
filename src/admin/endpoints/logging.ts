// POST /logging: lists the loggers, after changing all, one or several of them. Either every named logger
// changes or none. Where each source file has a logger, names are patterns that replace those of before.

import { findLevel, LOG_LEVELS, type Loggers, type LogLevel, levelNumber } from '../../log/index.ts';
import { endpoint } from '../endpoint.ts';
import { choice, type Parsed, pairs, parsed } from '../parameter.ts';
import { textResponse } from '../response.ts';

const USAGE = `usage: /logging?<name>=<level> (change single level)
usage: /logging?paths=name1=level1,name2=level2,... (change multiple levels)
usage: /logging?level=<level> (change all levels)
levels: ${LOG_LEVELS.join(' ')} 
`;

const UNKNOWN_LEVEL = 'unknown logger level';
const NO_PAIR = 'empty logger name or empty logger level';

/** Loggers and their new levels. */
type Levels = readonly (readonly [name: string, level: LogLevel])[];

export const LOGGING = endpoint({
  path: '/logging',
  help: 'Log levels: show or change them',
  mutates: true,
  parameters: {
    paths: parsed('Set several loggers: name1=level1,name2=level2', (paths, { loggers }) => {
      const { value, error } = readPaths(paths);
      return error === undefined ? { value } : { error: errorText(loggers, error) };
    }),
    level: choice({
      help: 'Set all loggers',
      values: ['', ...LOG_LEVELS],
      refusal: ({ loggers }) => errorText(loggers, UNKNOWN_LEVEL),
    }),
    logger: pairs('<logger>', 'Set one logger'),
  },
  handle({ loggers }, { paths, level, logger }) {
    const given = logger.length + (paths === undefined ? 0 : 1) + (level === '' ? 0 : 1);
    const error = given > 1 ? 'invalid number of parameters' : change(loggers, { paths, level, single: logger });
    return error === undefined ? textResponse(loggerList(loggers)) : textResponse(errorText(loggers, error), 400);
  },
});

interface Change {
  readonly paths: Levels | undefined;
  readonly level: LogLevel | '';
  readonly single: readonly (readonly [name: string, level: string])[];
}

/** @returns the error, or undefined when done. */
function change(loggers: Loggers, { paths, level, single }: Change): string | undefined {
  if (paths !== undefined) return setEach(loggers, paths);
  if (level !== '') return setAll(loggers, level);
  const [name, levelName] = single[0] ?? [];
  if (name === undefined || levelName === undefined) return undefined;
  if (name === '' || levelName === '') return NO_PAIR;
  const found = findLevel(levelName);
  return found === undefined ? UNKNOWN_LEVEL : setEach(loggers, [[name, found]]);
}

function setAll(loggers: Loggers, level: LogLevel): undefined {
  loggers.get('admin').info(`change all log levels: level='${level}'`);
  loggers.setAll(level);
}

function setEach(loggers: Loggers, levels: Levels): string | undefined {
  if (loggers.set(levels) !== undefined) return 'unknown logger name';
  const log = loggers.get('admin');
  for (const [name, level] of levels) log.info(`change log level: name='${name}' level='${level}'`);
  return undefined;
}

/** @param paths `name=level,name:level`. */
function readPaths(paths: string): Parsed<Levels> {
  const each: [string, LogLevel][] = [];
  for (const path of paths.split(',')) {
    const [, name, levelName] = /^([^=:]+)[=:]([^=:]+)$/.exec(path) ?? [];
    if (name === undefined || levelName === undefined) return { error: NO_PAIR };
    const level = findLevel(levelName);
    if (level === undefined) return { error: UNKNOWN_LEVEL };
    each.push([name, level]);
  }
  return { value: each };
}

/** Levels of files are told by their numbers. */
function loggerList(loggers: Loggers): string {
  if (loggers.isFineGrain) {
    const files = loggers.list().map(({ name, level }) => `  ${name}: ${levelNumber(level)}`);
    return `active loggers:\n${files.join('\n')}\n`;
  }
  const lines = loggers.list().map(({ name, level }) => `  ${name}: ${level}\n`);
  return `active loggers:\n${lines.join('')}\n`;
}

function errorText(loggers: Loggers, error: string): string {
  return `error: ${error}\n\n${USAGE}${loggerList(loggers)}`;
}
