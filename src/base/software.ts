// What the node tells of the program: to management servers, and to who looks at it.

import type { Version } from './version.ts';

export const USER_AGENT_NAME = 'weir';

export interface BuildVersion {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  readonly metadata: Readonly<Record<string, string>>;
}

export function buildVersion(version: Version): BuildVersion {
  const [major = 0, minor = 0, patch = 0] = version.release.split(/[.-]/, 3).map((part) => Number(part) || 0);
  const label = version.release.split('-').slice(1).join('-');
  const metadata = {
    ...(label === '' ? {} : { 'build.label': label }),
    'build.type': version.buildMode,
    'revision.sha': version.revision,
    'revision.status': version.treeStatus,
    'ssl.version': version.tlsLibrary,
  };
  return { major, minor, patch, metadata };
}
