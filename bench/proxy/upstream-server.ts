// The upstream where nginx is absent: the same answers from node:http. Usage: node upstream-server.ts <port> <host>

import { createServer } from 'node:http';
import { ANSWER_BYTES } from './upstream.ts';

const answers = new Map(Object.entries(ANSWER_BYTES).map(([path, size]) => [path, Buffer.alloc(size, 'weir ')]));

createServer((request, response) => {
  const answer = answers.get(request.url ?? '');
  request.resume().on('end', () => {
    response.writeHead(answer ? 200 : 404, { 'content-type': 'text/plain', 'content-length': answer?.length ?? 0 });
    response.end(answer);
  });
}).listen(Number(process.argv[2]), process.argv[3]);
