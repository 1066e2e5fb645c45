// Entry of the thread that reads large files of resources while main serves (src/control-plane/subscription/response-reader.ts): one
// question after the other, each with one answer.

import { parentPort } from 'node:worker_threads';
import { buffersOf, digestResponse, type ReadingOrder } from './config/index.ts';

parentPort!.on('message', (order: ReadingOrder) => {
  const digest = digestResponse(order);
  parentPort!.postMessage(digest, buffersOf(digest));
});
