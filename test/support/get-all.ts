// Many requests whose answers do not matter, over a number of connections that stay open between them.

import { Agent, get } from 'node:http';

/** GETs every path from a listener on 127.0.0.1, over so many connections, each in its turn. */
export async function getAll(port: number, paths: readonly string[], connections: number): Promise<void> {
  const agents = Array.from({ length: connections }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  await Promise.all(paths.map((path, index) => request(port, path, agents[index % connections]!)));
  for (const agent of agents) agent.destroy();
}

function request(port: number, path: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    get({ port, path, agent, host: '127.0.0.1' }, (response) => {
      response.resume();
      response.on('end', resolve);
    }).on('error', reject);
  });
}
