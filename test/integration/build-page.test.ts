// The build of the admin interface's page, with it and without it.

import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../src/base/package-root.ts';
import { runProgram } from '../support/child-process.ts';

/** The manifest, and the files that it names. */
async function build(...options: string[]): Promise<{ manifest: Record<string, string> | null; files: string[] }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-page-'));
  try {
    const script = path.join(PACKAGE_ROOT, 'scripts/build-page.mjs');
    const { code, stderr } = await runProgram(process.execPath, [script, ...options, '--out', folder]);
    assert.equal(code, 0, stderr);
    const files = (await readdir(folder)).filter((name) => name !== 'manifest.json').toSorted();
    return { manifest: JSON.parse(await readFile(path.join(folder, 'manifest.json'), 'utf8')), files };
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe('the build of the page', () => {
  it('is a script and a style whose names say what is in them', async () => {
    const [first, second] = await Promise.all([build(), build('--define', 'admin_html=enabled')]);
    assert.deepEqual(first, second);
    assert.deepEqual(Object.values(first.manifest!).toSorted(), first.files);
    assert.match(first.manifest!.script!, /^page-[A-Z0-9]{8}\.js$/);
    assert.match(first.manifest!.style!, /^page-[A-Z0-9]{8}\.css$/);
  });

  it('is nothing when it is to be left out', async () => {
    assert.deepEqual(await build('--define', 'admin_html=disabled'), { manifest: null, files: [] });
  });
});
