import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { buildOutput, PACKAGE_ROOT } from '../../../src/base/package-root.ts';
import { addonName, re2 } from '../../../src/base/re2.ts';

describe('re2', () => {
  it('is the addon of the package itself, by the name that the launcher looks for', () => {
    const launcher = readFileSync(path.join(PACKAGE_ROOT, 'scripts/setup/launch.sh'), 'utf8');
    const [, abi] = /^RUNTIME_ABI=(\d+)$/m.exec(launcher)!;
    assert.equal(addonName(), `re2-${process.platform}-${process.arch}-${abi}.node`);
    assert.ok(existsSync(buildOutput(`addons/${addonName()}`)));
    const RE2 = re2();
    assert.equal(new RE2('a(b+)').exec('xabb')![1], 'bb');
    // That of npm would have been loaded as a module.
    const loaded = Object.keys(process.getBuiltinModule('node:module').createRequire(import.meta.url).cache);
    assert.deepEqual(
      loaded.filter((file) => file.includes('/re2/')),
      [],
    );
    assert.equal(re2(), RE2);
  });

  it('is the same for every copy of the module, as a process may have two of the library', async () => {
    const copy = (await import(`${import.meta.resolve('../../../src/base/re2.ts')}?copy`)) as {
      readonly re2: typeof re2;
    };
    assert.notEqual(copy.re2, re2);
    assert.equal(copy.re2(), re2());
  });
});
