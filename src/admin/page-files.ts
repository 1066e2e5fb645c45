// The page's script and style, as scripts/build-page.mjs has bundled them: read once, served under names that change with what is
// in them.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { buildOutput } from '../base/package-root.ts';
import { type Endpoint, endpoint } from './endpoint.ts';

export interface PageFile {
  /** `page-4AX7.js`. */
  readonly name: string;
  readonly body: Uint8Array;
}

export interface PageFiles {
  readonly script: PageFile;
  readonly style: PageFile;
}

/** Written by the build. */
interface Manifest {
  readonly script: string;
  readonly style: string;
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=UTF-8',
  '.css': 'text/css; charset=UTF-8',
};

/** @returns undefined where the build has left the page out. */
export function readPageFiles(): PageFiles | undefined {
  const manifest: Manifest | null = JSON.parse(readFileSync(buildOutput('page/manifest.json'), 'utf8'));
  if (manifest === null) return undefined;
  const read = (name: string): PageFile => ({ name, body: readFileSync(buildOutput(`page/${name}`)) });
  return { script: read(manifest.script), style: read(manifest.style) };
}

export function pageFileEndpoints({ script, style }: PageFiles): Endpoint[] {
  return [script, style].map(({ name, body }) =>
    endpoint({
      path: `/page/${name}`,
      help: 'Part of the page',
      handle: () => ({
        status: 200,
        contentType: CONTENT_TYPES[path.extname(name)]!,
        headers: {
          // Another content has another name.
          'cache-control': 'public, max-age=31536000, immutable',
          'cross-origin-resource-policy': 'same-origin',
        },
        body,
      }),
    }),
  );
}
