// What this build is. The release number stands in package.json; the revision and the state of its source tree
// are written by the build into build/version.json, because a running proxy has no git.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { buildOutput, PACKAGE_ROOT } from './package-root.ts';

/** Of what two processes tell each other in a hot restart (src/process/hot-restart/messages.ts): only equal ones do. */
export const HOT_RESTART_VERSION = '1.0';
const NO_HOT_RESTART = 'disabled';

/** As --hot-restart-version prints it. Where there are no system calls, there is no hot restart. */
export function hotRestartVersion({ disableHotRestart }: { readonly disableHotRestart: boolean }): string {
  return disableHotRestart || process.platform !== 'linux' ? NO_HOT_RESTART : HOT_RESTART_VERSION;
}

export interface Version {
  /** Full hash of the commit, or `unknown` when the build could not tell. */
  readonly revision: string;
  /** `1.2.3`, or `1.2.3-dev` between releases. */
  readonly release: string;
  readonly treeStatus: 'Clean' | 'Modified';
  /** RELEASE when compiled, DEBUG when run from its sources. */
  readonly buildMode: 'RELEASE' | 'DEBUG';
  readonly tlsLibrary: string;
}

const UNKNOWN_REVISION = 'unknown';

/** Reads two small files; call it once. */
export function readVersion(): Version {
  const release: unknown = readJson(path.join(PACKAGE_ROOT, 'package.json')).version;
  const build = readJson(buildOutput('version.json'));
  const revision: unknown = build.revision;
  return {
    revision: typeof revision === 'string' && revision !== '' ? revision : UNKNOWN_REVISION,
    release: typeof release === 'string' ? release : '0.0.0',
    treeStatus: build.treeStatus === 'Clean' ? 'Clean' : 'Modified',
    buildMode: import.meta.filename.endsWith('.ts') ? 'DEBUG' : 'RELEASE',
    tlsLibrary: 'OpenSSL',
  };
}

/** `<revision>/<release>/<Clean|Modified>/<RELEASE|DEBUG>/<tls library>`: --version and /server_info. */
export function formatVersion({ revision, release, treeStatus, buildMode, tlsLibrary }: Version): string {
  return `${revision}/${release}/${treeStatus}/${buildMode}/${tlsLibrary}`;
}

/** The first six hex digits of the revision as a number: the gauge server.version. 0 for an unknown revision. */
export function revisionNumber({ revision }: Version): number {
  const digits = /^[0-9a-f]{6}/.exec(revision)?.[0];
  return digits === undefined ? 0 : Number.parseInt(digits, 16);
}

/** A file that is absent or no JSON object counts as empty: a proxy does not fail for want of its version. */
function readJson(file: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
