// What the start of the program leaves goes back to the system; how much stays is measured by bench/idle-memory.ts.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { socketAddress } from '../support/bootstrap.ts';
import { untilEqual } from '../support/eventually.ts';
import { startWeir } from '../support/weir-process.ts';

it('the memory that the start has taken is given back once it is over', async () => {
  const configYaml = JSON.stringify({ admin: { address: socketAddress('127.0.0.1', 0) } });
  await using weir = await startWeir({ configYaml, args: ['-l', 'debug'] });
  const givenBack = (): RegExpExecArray | null => /the start is over: (\d+) MB given back/.exec(weir.output.stderr);
  await untilEqual(true, () => givenBack() !== null, 'whether memory was given back');
  assert.ok(Number(givenBack()![1]) >= 5, weir.output.stderr);
});
