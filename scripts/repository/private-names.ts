// What belongs to one machine must not reach the repository: its folders, and the registry it installs from.

import os from 'node:os';
import path from 'node:path';
import type { RepositoryFile } from './files.ts';

/** Registries that everybody has are private too: a file that names one pins the reader to it. */
const REGISTRY_HOST = /\b(?:registry\.[a-z]+\.(?:com|io|org)|npm\.pkg\.[a-z]+\.com)\b/;
/** Folders that any machine may have and any file may speak of: a clone below one of them is no private matter. */
const COMMON_FOLDERS = [
  ...['/app', '/build', '/code', '/dist', '/home', '/nonexistent', '/opt', '/project', '/repo', '/src', '/srv'],
  ...['/test', '/tmp', '/usr', '/usr/src', '/var', '/var/lib', '/var/tmp', '/workspace'],
];

/**
 * @param root      folder of the repository
 * @param registry  address that npm is set to, or empty
 */
export function privateNameBreaches(root: string, registry: string, files: readonly RepositoryFile[]): string[] {
  const names = [...machineFolders(root), ...hostOf(registry)];
  return files.flatMap(({ path: file, text }) => {
    const held = names.filter((name) => text.includes(name));
    const host = REGISTRY_HOST.exec(text)?.[0];
    if (host !== undefined && !held.includes(host)) held.push(host);
    return held.map((name) => `${file}:${lineOf(text, name)}: holds ${name}, a name of one machine or registry`);
  });
}

function machineFolders(root: string): string[] {
  const folders = [root, path.dirname(root), os.homedir()];
  const isOwn = (folder: string): boolean => folder !== path.parse(folder).root && !COMMON_FOLDERS.includes(folder);
  return folders.filter(isOwn).map((folder) => `${folder}/`);
}

function hostOf(address: string): string[] {
  return URL.canParse(address) ? [new URL(address).host] : [];
}

function lineOf(text: string, name: string): number {
  return text.slice(0, text.indexOf(name)).split('\n').length;
}
