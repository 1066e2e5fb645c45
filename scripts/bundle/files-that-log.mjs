// Which sources write log lines, told by how the calls look: `log.info(`, `this.#log.warning(`, `loggers.get('main').error(`,
// `logs.router.debug(`, `log.ofFile(FILE).debug(`. /logging lists them where each has a logger of its own (--enable-fine-grain-logging).

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const LOG_CALL =
  /(?:\blogs\s*\.\s*\w+|[lL]og(?:gers?)?)(?:\s*\.\s*(?:get|ofFile)\([^()]*\))*\s*\??\.\s*(?:trace|debug|info|warning|error|critical)\(/;

/** @returns paths relative to `root`, with forward slashes, in order. */
export function filesThatLog(root) {
  return readdirSync(path.join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => LOG_CALL.test(readFileSync(file, 'utf8')))
    .map((file) => path.relative(root, file).replaceAll(path.sep, '/'))
    .sort();
}
