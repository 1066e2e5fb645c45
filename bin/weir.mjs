#!/usr/bin/env node
// The `weir` command. Runs under any Node from 18 on and hands over to the Node that weir is pinned to, with the flags
// that weir needs.

import { launch } from '../scripts/setup/launch.mjs';
import { isRe2Provided, provideRe2 } from '../scripts/setup/re2.mjs';

// After `npm install` of the package, re2 was built for the Node that ran npm, or not at all.
launch('weir', 'src/main.js', (runtime) =>
  isRe2Provided() ? undefined : provideRe2(runtime, (text) => process.stderr.write(`weir: ${text}\n`)),
);
