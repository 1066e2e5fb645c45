// Puts re2 in place for the runtime that runs this, before the `weir` command starts the program. The argument is the name
// of that command, for messages.

import { provideRe2 } from './re2.mjs';

const say = (text) => process.stderr.write(`${process.argv[2]}: ${text}\n`);
const fault = provideRe2(process.execPath, say);
if (fault) {
  say(fault);
  process.exit(1);
}
