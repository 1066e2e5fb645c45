// What a failure to connect is called, by the error that the system gives for it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectFailure, isBindFailure, transportDetail } from '../../../../src/data-plane/upstream/pool/failure.ts';

function systemError(fields: Partial<NodeJS.ErrnoException>): NodeJS.ErrnoException {
  return Object.assign(new Error('connect'), fields);
}

test('what this machine lacks or forbids is a local failure', () => {
  const codes = ['EMFILE', 'ENFILE', 'ENOMEM', 'EADDRNOTAVAIL', 'EACCES', 'EPERM', 'EINVAL', 'EAFNOSUPPORT'];
  for (const code of codes) assert.equal(connectFailure(systemError({ code })), 'local connection failure', code);
});

test('what fails before anything is sent is a local failure', () => {
  for (const syscall of ['socket', 'setsockopt', 'bind']) {
    assert.equal(connectFailure(systemError({ code: 'ENODEV', syscall })), 'local connection failure', syscall);
  }
  assert.equal(connectFailure(systemError({ code: 'ENODEV', syscall: 'connect' })), 'remote connection failure');
});

test('anything else is the fault of the other end', () => {
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT', 'ETIMEDOUT']) {
    assert.equal(connectFailure(systemError({ code })), 'remote connection failure', code);
  }
  assert.equal(connectFailure(systemError({})), 'remote connection failure');
  assert.equal(connectFailure(null), 'remote connection failure');
});

test('only a source address that cannot be bound is a bind failure', () => {
  assert.ok(isBindFailure(systemError({ code: 'EADDRNOTAVAIL', syscall: 'bind' })));
  for (const error of [null, systemError({}), systemError({ code: 'EADDRNOTAVAIL', syscall: 'connect' })]) {
    assert.ok(!isBindFailure(error));
  }
});

test('the system is quoted by its positive error number, if it has given one', () => {
  assert.equal(transportDetail(systemError({ errno: -111 })), 'delayed connect error: 111');
  for (const error of [null, systemError({ code: 'EMFILE' })]) assert.equal(transportDetail(error), '');
});
