// Which way of reading accepted sockets is chosen at the start.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseReadMode } from '../../../../src/data-plane/network/read-mode.ts';

test('this Node release can read accepted sockets the lean way', async () => {
  assert.equal(await chooseReadMode(), 'lean');
});
