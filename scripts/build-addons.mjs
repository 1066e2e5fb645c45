// Puts the addon of re2 that set-up has built beside the other build outputs, by the name under which src/base/re2.ts looks for
// it: so the package brings it, and the sources that it is built from stay away. Run by the runtime that it was built for.

import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { PACKAGE_ROOT as root } from './setup/runtime.mjs';

const folder = path.join(root, 'build', 'addons');
const name = `re2-${process.platform}-${process.arch}-${process.versions.modules}.node`;

// One of a former runtime would only be carried along.
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
copyFileSync(path.join(root, 'node_modules/re2/build/Release/re2.node'), path.join(folder, name));
