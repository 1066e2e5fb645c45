// The file of a socket that nobody listens on any more, as a process leaves it behind that is killed.

import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { createServer } from 'node:net';

export async function leaveSocket(path: string): Promise<void> {
  const server = createServer().listen(`${path}-`);
  await once(server, 'listening');
  // What closes it takes the file away that it has made, and finds none.
  renameSync(`${path}-`, path);
  server.close();
  await once(server, 'close');
}
