// The repository keeps its promises to a stranger: documents name files that exist, the lockfile installs anywhere,
// nothing belongs to one machine. Each rule is also shown a breach.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { documentBreaches } from '../../scripts/repository/documents.ts';
import { type RepositoryFile, repositoryFiles } from '../../scripts/repository/files.ts';
import { layoutSourceBreaches, moduleBreaches } from '../../scripts/repository/layouts.ts';
import { lockfileBreaches } from '../../scripts/repository/lockfile.ts';
import { privateNameBreaches } from '../../scripts/repository/private-names.ts';
import { LINES_TO_ASK_AT, longFileRemarks } from '../../scripts/repository/sizes.ts';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';

const files = repositoryFiles(PACKAGE_ROOT);
const textOf = (name: string): string => files.find(({ path }) => path === name)?.text ?? '';
const document = (text: string): RepositoryFile[] => [...files, { path: 'docs/new.md', text }];

describe('documents', () => {
  it('name only files that exist', () => {
    assert.ok(textOf('ARCHITECTURE.md').includes('`src/main.ts`'));
    assert.deepEqual(documentBreaches(PACKAGE_ROOT, files), []);
  });

  it('are found out when they name a file or link to one that is gone', () => {
    const text =
      'See `src/gone.ts`, `src/demo/`, [this](../gone.md#part), [that](../README.md), `/stats` and `build/x.json`.';
    assert.deepEqual(documentBreaches(PACKAGE_ROOT, document(text)), [
      'docs/new.md: names src/gone.ts, which does not exist',
      'docs/new.md: names gone.md, which does not exist',
    ]);
  });
});

describe('the lockfile', () => {
  it('holds no registry address and the packages of every platform', () => {
    assert.deepEqual(lockfileBreaches(textOf('package-lock.json')), []);
  });

  it('is found out when it does not', () => {
    const packages = {
      'node_modules/tool': {
        resolved: 'https://example.com/tool.tgz',
        optionalDependencies: { 'tool-a': '1', 'tool-b': '1' },
      },
      'node_modules/tool-a': {},
      'node_modules/part': { resolved: 'part', link: true },
    };
    assert.deepEqual(lockfileBreaches(JSON.stringify({ packages })), [
      'package-lock.json: node_modules/tool holds the address of a registry',
      'package-lock.json: tool-b is missing; run node scripts/complete-lockfile.mjs',
    ]);
  });
});

describe('private names', () => {
  it('stand in no file', () => {
    assert.deepEqual(privateNameBreaches(PACKAGE_ROOT, '', files), []);
  });

  it('are found: the folder of this clone and the registry in use', () => {
    const text = 'first\nsee /home/somebody/weir/src and https://npm.example.net/x';
    const found = privateNameBreaches('/home/somebody/weir', 'https://npm.example.net/', [{ path: 'a.md', text }]);
    assert.ok(found.some((line) => line.startsWith('a.md:2: holds /home/somebody/weir/')));
    assert.ok(found.some((line) => line.startsWith('a.md:2: holds npm.example.net')));
  });

  it('are found: a registry that everybody has, whichever is in use', () => {
    // In parts, since this file is looked at, too.
    for (const host of [
      ['registry', 'npmjs', 'org'],
      ['npm', 'pkg', 'github', 'com'],
    ].map((parts) => parts.join('.'))) {
      const found = privateNameBreaches('/weir', '', [{ path: 'a.md', text: `see https://${host}/tool` }]);
      assert.deepEqual(found, [`a.md:1: holds ${host}, a name of one machine or registry`]);
    }
  });

  it('are not the folders that every machine has, wherever the clone is', () => {
    const text = 'writes to /tmp/socket, reads /app/config.yaml, imports ../src/a.ts';
    for (const clone of ['/tmp/weir', '/app', '/src/weir', '/weir']) {
      assert.deepEqual(privateNameBreaches(clone, '', [{ path: 'a.md', text }]), []);
    }
  });
});

describe('long files', () => {
  it('are remarked on, generated ones excepted', () => {
    const text = '\n'.repeat(LINES_TO_ASK_AT);
    const long = ['src/a.ts', 'src/generated/b.ts', 'docs/c.md'].map((path) => ({ path, text }));
    assert.deepEqual(longFileRemarks(long), [`src/a.ts has ${LINES_TO_ASK_AT} lines: which second idea moved in?`]);
  });
});

describe('memory layouts', () => {
  it('hold integers only, and the built modules were compiled from them', async () => {
    assert.deepEqual(await layoutSourceBreaches(PACKAGE_ROOT), []);
    assert.deepEqual(await moduleBreaches(PACKAGE_ROOT), []);
  });
});
