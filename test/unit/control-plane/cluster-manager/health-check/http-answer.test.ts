// An answer to a check as its bytes come in, without a connection: what it says, and whether the connection can be kept.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type AnswerState,
  HttpAnswer,
} from '../../../../../src/control-plane/cluster-manager/health-check/http-answer.ts';
import { compileHttp1, Http1Codec, Method } from '../../../../../src/wasm/http1.ts';

const MEBIBYTE = 1024 * 1024;
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
const READING: AnswerState = { kind: 'reading' };
const codec = new Http1Codec(compileHttp1());

const newAnswer = (): HttpAnswer => new HttpAnswer(codec, Method.GET, () => {});
const complete = (isReusable: boolean): AnswerState => ({ kind: 'complete', isReusable });
const broken = (reason: string): AnswerState => ({ kind: 'broken', reason });
const stateAfter = (text: string): AnswerState => newAnswer().read(Buffer.from(text));

describe('an answer to a check', () => {
  it('leaves a connection that can be kept when it has ended in the middle of it', () => {
    assert.deepEqual(stateAfter('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'), complete(true));
    assert.deepEqual(stateAfter(`${CHUNKED}2\r\nok\r\n0\r\n\r\n`), complete(true));
    assert.deepEqual(
      stateAfter('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok'),
      complete(false),
    );
  });

  it('leaves none when the end of the connection is its end', () => {
    const answer = newAnswer();
    assert.deepEqual(answer.read(Buffer.from('HTTP/1.1 200 OK\r\n\r\nok')), READING);
    assert.deepEqual(answer.end(), complete(false));
  });

  it('is read to its end, however long it is', () => {
    const answer = newAnswer();
    assert.deepEqual(answer.read(Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${2 * MEBIBYTE}\r\n\r\n`)), READING);
    assert.deepEqual(answer.read(Buffer.alloc(2 * MEBIBYTE - 1)), READING);
    assert.deepEqual(answer.read(Buffer.alloc(1)), complete(true));
  });

  it('has at most a hundred trailers, of 60 KiB together', () => {
    const withTrailers = (trailers: string): AnswerState => stateAfter(`${CHUNKED}0\r\n${trailers}\r\n`);
    assert.deepEqual(withTrailers('x: y\r\n'.repeat(100)), complete(true));
    assert.deepEqual(withTrailers('x: y\r\n'.repeat(101)), broken('no HTTP: too_many_trailers'));
    assert.deepEqual(withTrailers(`x:${'y'.repeat(60 * 1024 - 1)}\r\n`), complete(true));
    assert.deepEqual(withTrailers(`x:${'y'.repeat(60 * 1024)}\r\n`), broken('no HTTP: trailers_too_large'));
  });
});
