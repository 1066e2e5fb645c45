// HTTP servers on several loopback addresses and one port, as a DNS name has them. Each answers everything with its address.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

const MAX_PORTS_TRIED = 20;

export class AddressedServers implements AsyncDisposable {
  readonly port: number;
  readonly #servers: readonly Server[];
  readonly #sockets: ReadonlyMap<string, Set<Socket>>;

  private constructor(port: number, servers: readonly Server[], sockets: ReadonlyMap<string, Set<Socket>>) {
    this.port = port;
    this.#servers = servers;
    this.#sockets = sockets;
  }

  static async start(ips: readonly string[]): Promise<AddressedServers> {
    for (let tries = 1; ; tries += 1) {
      const servers: Server[] = [];
      const sockets = new Map<string, Set<Socket>>();
      let port = 0;
      try {
        for (const ip of ips) {
          const open = new Set<Socket>();
          sockets.set(ip, open);
          servers.push(await listen(ip, port, open));
          ({ port } = servers[0]!.address() as AddressInfo);
        }
        return new AddressedServers(port, servers, sockets);
      } catch (error) {
        // A port that is free at one address may be taken at another.
        for (const server of servers) server.close();
        if (tries === MAX_PORTS_TRIED) throw error;
      }
    }
  }

  /** Connections that the server at this address has at the moment. */
  connections(ip: string): number {
    return this.#sockets.get(ip)!.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = this.#servers.map((server) => once(server, 'close'));
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
    await Promise.all(closed);
  }
}

async function listen(ip: string, port: number, open: Set<Socket>): Promise<Server> {
  const server = createServer((_request, response) => response.end(ip));
  // Idle connections are the proxy's to close.
  server.keepAliveTimeout = 0;
  server.on('connection', (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  server.listen(port, ip);
  await once(server, 'listening');
  return server;
}
