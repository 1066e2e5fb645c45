import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SocketQuestions } from '../../../../src/control-plane/workers/socket-questions.ts';

test('a question for sockets is answered by those that are left when a worker ends', async () => {
  const questions = new SocketQuestions();
  const asked: number[] = [];
  const ask = (workers: number[]): Promise<readonly number[]> => questions.ask(workers, (number) => asked.push(number));
  const first = ask([0, 1]);
  const second = ask([1]);
  questions.answered(asked[0]!, 0, [7, 8]);
  questions.drop(1);
  assert.deepEqual([await first, await second], [[7, 8], []]);
  // Too late, and nobody's.
  questions.answered(asked[1]!, 1, [9]);
  assert.deepEqual(await ask([]), []);
  assert.equal(asked.length, 2);
});
