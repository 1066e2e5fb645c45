import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import { formatVersion, readVersion, revisionNumber, type Version } from '../../../src/base/version.ts';

const VERSION: Version = {
  revision: 'fedcba9876543210fedcba9876543210fedcba98',
  release: '1.2.3-dev',
  treeStatus: 'Modified',
  buildMode: 'DEBUG',
  tlsLibrary: 'OpenSSL',
};

describe('the version', () => {
  it('has the release number of the package', () => {
    const { version } = JSON.parse(readFileSync(path.join(PACKAGE_ROOT, 'package.json'), 'utf8'));
    assert.equal(readVersion().release, version);
  });

  it('is a debug build when it runs from its sources', () => assert.equal(readVersion().buildMode, 'DEBUG'));

  it('has five parts', () => {
    const text = 'fedcba9876543210fedcba9876543210fedcba98/1.2.3-dev/Modified/DEBUG/OpenSSL';
    assert.equal(formatVersion(VERSION), text);
    assert.equal(formatVersion(readVersion()).split('/').length, 5);
  });

  it('is shown as a number made of the first six digits of the revision', () => {
    assert.equal(revisionNumber(VERSION), 0xfedcba);
    assert.equal(revisionNumber({ ...VERSION, revision: 'unknown' }), 0);
  });
});
