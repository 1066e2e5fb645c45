// Documents name files; files get renamed. Holds every path that a document names against the tree.

import { existsSync } from 'node:fs';
import path from 'node:path';
import type { RepositoryFile } from './files.ts';

/** Made by the build, so absent from a fresh clone. */
const BUILT = /^(?:build|dist|node_modules)\//;
const CODE_SPAN = /`([^`\s]+)`/g;
const LINK = /\]\(([^)\s#]+)(?:#[^)]*)?\)/g;
/** `src/stats/scope.ts`, `docs/decisions/`, `package.json`; not `/stats`, not `cluster.web.`. */
const PATH_LIKE = /^(?:[\w@.-]+\/)+[\w@.-]*$|^[\w@-][\w@.-]*\.(?:ts|mjs|json|md|yaml)$/;

/** One line per path that a Markdown document names and that does not exist. */
export function documentBreaches(root: string, files: readonly RepositoryFile[]): string[] {
  const topLevel = new Set(files.map((file) => file.path.split('/')[0]));
  const isInTree = (name: string): boolean => topLevel.has(name.split('/')[0]) && !BUILT.test(name);
  return files
    .filter((file) => file.path.endsWith('.md'))
    .flatMap((file) => {
      const folder = path.posix.dirname(file.path);
      const spans = matches(file.text, CODE_SPAN).filter((name) => PATH_LIKE.test(name) && isInTree(name));
      const links = matches(file.text, LINK)
        .filter((target) => !/^[a-z]+:/.test(target))
        .map((target) => path.posix.join(folder, target));
      const missing = new Set([...spans, ...links].filter((name) => !existsSync(path.join(root, name))));
      return [...missing].map((name) => `${file.path}: names ${name}, which does not exist`);
    });
}

function matches(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map((match) => match[1]!);
}
