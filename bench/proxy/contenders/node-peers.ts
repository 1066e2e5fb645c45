// Proxies of the same platform, as npm has them.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import type { Contender } from '../contender.ts';
import { PinnedProcess } from '../pinned-process.ts';

function nodePeer(packageName: string, script: string): Contender {
  return {
    name: packageName,
    absence: `${packageName} is not installed: run npm ci with development dependencies`,
    version: () => packageVersion(packageName),
    start: ({ cores, port, upstreamPort }) => {
      const file = path.join(import.meta.dirname, '../peers', script);
      const command = [process.execPath, '--disable-warning=ExperimentalWarning', file, port, upstreamPort].map(String);
      return PinnedProcess.start(cores, command, port, { NODE_ENV: 'production' });
    },
  };
}

function packageVersion(name: string): string | undefined {
  try {
    const text = readFileSync(path.join(PACKAGE_ROOT, 'node_modules', name, 'package.json'), 'utf8');
    return (JSON.parse(text) as { version: string }).version;
  } catch {
    return undefined;
  }
}

export const HTTP_PROXY_3 = nodePeer('http-proxy-3', 'http-proxy-3.ts');
export const FASTIFY_HTTP_PROXY = nodePeer('@fastify/http-proxy', 'fastify-http-proxy.ts');
