#!/usr/bin/env node
// The `weir-bench` command: the same hand-over as `weir`. It needs no native addon, so nothing is prepared.

import { launch } from '../scripts/setup/launch.mjs';

launch('weir-bench', 'src/bench-cli/main.js');
