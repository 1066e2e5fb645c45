// --print-schema: the JSON schema of the bootstrap, for editors, on standard output. Main thread.

import { readFileSync } from 'node:fs';
import { buildOutput } from '../base/package-root.ts';
import { bootstrapSchema, type ProtoComments, protoSchema } from '../config/index.ts';
import { EXTENSIONS } from '../extensions/control-registry.ts';
import { printDocument } from './print.ts';

/** @returns the exit code. */
export function printSchema(): number {
  const comments = JSON.parse(readFileSync(buildOutput('proto/comments.json'), 'utf8')) as ProtoComments;
  return printDocument(`${JSON.stringify(bootstrapSchema(protoSchema(), { extensions: EXTENSIONS, comments }))}\n`);
}
