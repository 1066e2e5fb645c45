// Whether a log could be opened at a path, found out before there is one and without leaving a trace. Main thread.

import { accessSync, closeSync, constants, openSync, readlinkSync, statSync } from 'node:fs';
import path from 'node:path';
import { getSystemErrorMessage } from 'node:util';
import { errorMessage } from '../base/errors.ts';
import { type LogTarget, logTarget } from './log-output.ts';

const { O_APPEND, O_WRONLY, W_OK, X_OK } = constants;
/** As many links as Linux follows. */
const MAX_LINKS = 40;

/** What an operator reads of a log that cannot be opened. */
export function openFailure(target: LogTarget, reason: string): string {
  return `failed to open log file '${target}': ${reason}`;
}

/** @returns the reason, `permission denied`; undefined when nothing speaks against it. Never throws. */
export function findLogPathFault(file: string): string | undefined {
  if (typeof logTarget(file) === 'number') return undefined;
  try {
    return faultOf(file, MAX_LINKS);
  } catch (error) {
    const { code, errno } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return 'its folder does not exist';
    return errno === undefined ? errorMessage(error) : getSystemErrorMessage(errno);
  }
}

function faultOf(file: string, links: number): string | undefined {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined && !file.endsWith('/')) return faultOfNew(file, links);
  if (stats === undefined || stats.isDirectory()) return 'it is a folder';
  if (stats.isSocket()) return 'it is a socket';
  // Readers of a FIFO would notice that it was opened.
  if (stats.isFile()) closeSync(openSync(file, O_WRONLY | O_APPEND));
  else accessSync(file, W_OK);
  return undefined;
}

/** Of a file that opening would make, perhaps where a link points that leads nowhere. */
function faultOfNew(file: string, links: number): string | undefined {
  const folder = path.dirname(file);
  const target = linkTarget(file);
  if (target !== undefined && links > 0) return faultOf(path.resolve(folder, target), links - 1);
  if (!statSync(folder).isDirectory()) return 'its parent is not a folder';
  accessSync(folder, W_OK | X_OK);
  return undefined;
}

function linkTarget(file: string): string | undefined {
  try {
    return readlinkSync(file);
  } catch {
    return undefined;
  }
}
