// Loaded ahead of the program (`--import`), with WEIR_TEST_RECORD a file: writes there, when the program ends, what its main thread has
// loaded and made, as StartRecord.

import { writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { isMainThread } from 'node:worker_threads';

export interface StartRecord {
  /** URLs of modules that are not Node's own, in their order. */
  readonly files: readonly string[];
  /** Node's own, without `node:`, those that others of them load included. */
  readonly builtins: readonly string[];
  /** Each of them loads tables of Unicode, 10 ms for the first. */
  readonly segmenters: number;
}

const BUILTIN = 'NativeModule ';
const files: string[] = [];
registerHooks({
  load(url, context, next) {
    if (!url.startsWith('node:')) files.push(url);
    return next(url, context);
  },
});

let segmenters = 0;
const Counted = new Proxy(Intl.Segmenter, {
  construct(target, given) {
    segmenters += 1;
    return Reflect.construct(target, given) as object;
  },
});
Object.assign(Intl, { Segmenter: Counted });

if (isMainThread) {
  process.on('exit', () => {
    const { moduleLoadList } = process as unknown as { readonly moduleLoadList: readonly string[] };
    const builtins = moduleLoadList
      .filter((name) => name.startsWith(BUILTIN))
      .map((name) => name.slice(BUILTIN.length));
    const record: StartRecord = { files, builtins, segmenters };
    writeFileSync(process.env.WEIR_TEST_RECORD!, JSON.stringify(record));
  });
}
