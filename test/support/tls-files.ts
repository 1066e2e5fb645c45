// Certificates, keys and secrets in files that a test replaces while they are in use.

import { copyFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { TestCertificate } from './certificates.ts';
import { tlsMessage } from './tls-config.ts';

export type PairOfFiles = Pick<TestCertificate, 'certificatePath' | 'keyPath'>;

/** The paths of a pair in a folder of its own, as Kubernetes mounts them. */
export function pairIn(folder: string): PairOfFiles {
  return { certificatePath: path.join(folder, 'tls.crt'), keyPath: path.join(folder, 'tls.key') };
}

export function copyPair(to: PairOfFiles, from: PairOfFiles): void {
  mkdirSync(path.dirname(to.certificatePath), { recursive: true });
  copyFileSync(from.certificatePath, to.certificatePath);
  copyFileSync(from.keyPath, to.keyPath);
}

/** Made beside it, and moved over it. */
export function replaceFile(file: string, content: string | Buffer): void {
  writeFileSync(`${file}.new`, content);
  renameSync(`${file}.new`, file);
}

/** What a file holds that secrets are read from. */
export function secretResponse(secret: object): string {
  return JSON.stringify({ version_info: '1', resources: [tlsMessage('Secret', secret)] });
}

/** Asks for a secret in such a file. */
export function secretFrom(name: string, file: string): object {
  return { name, sds_config: { path_config_source: { path: file } } };
}
