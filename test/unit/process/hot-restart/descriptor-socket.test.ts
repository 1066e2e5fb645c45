// Descriptors that go from one process to another, here both ends in one.

import assert from 'node:assert/strict';
import { closeSync, fstatSync, openSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { SystemCalls } from '../../../../src/base/system-calls.ts';
import {
  DESCRIPTORS_AT_A_TIME,
  DescriptorSocket,
  sendDescriptors,
} from '../../../../src/process/hot-restart/descriptor-socket.ts';

const calls = SystemCalls.open();
const skip = calls === undefined ? 'there are no system calls' : false;

test('more descriptors than a message takes come in their order, and those of nobody are closed', {
  skip,
}, async (t) => {
  const place = { socketPath: '@weir_test', socketMode: 0o600, baseId: process.pid, epoch: 1 };
  const socket = await DescriptorSocket.bind(place, calls!);
  t.after(() => socket.close());
  const many = Array.from({ length: 2 * DESCRIPTORS_AT_A_TIME + 44 }, (_, at) =>
    openSync(at % 2 === 0 ? '/dev/null' : '/dev/zero', 'r'),
  );
  const device = (descriptor: number): number => fstatSync(descriptor).rdev;
  const open = (): number => readdirSync('/proc/self/fd').length;
  socket.expect('mine');
  const before = open();
  assert.ok(sendDescriptors(calls!, place, 'nobody', many.slice(0, 3)));
  assert.ok(sendDescriptors(calls!, place, 'mine', many));
  const taken = socket.take('mine');
  assert.deepEqual(taken.map(device), many.map(device));
  assert.equal(open(), before + taken.length);
  for (const descriptor of [...many, ...taken]) closeSync(descriptor);
});

test('descriptors for a process that is not there are told of', { skip }, () => {
  const place = { socketPath: '@weir_test', socketMode: 0o600, baseId: process.pid, epoch: 2 };
  assert.equal(sendDescriptors(calls!, place, 'token', [0]), false);
});
