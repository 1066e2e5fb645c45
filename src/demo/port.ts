// Free ports on this machine: the wished one, or the next above it.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

const LAST_PORT = 65_535;
/** Taken, or not ours to bind: the next port may still do. */
const SKIPPED_CODES = new Set(['EADDRINUSE', 'EACCES']);

/** Binds `server` alone to `wishedPort` (0 for any) or to the next free port above it; resolves to the port. */
export async function listenNear(server: Server, host: string, wishedPort: number): Promise<number> {
  for (let port = wishedPort; ; port += 1) {
    try {
      server.listen({ host, port, exclusive: true });
      await once(server, 'listening');
      return (server.address() as AddressInfo).port;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? '';
      if (!SKIPPED_CODES.has(code) || port >= LAST_PORT) throw error;
    }
  }
}

/**
 * The first port from `wishedPort` on that nobody listens on and that is not in `reserved`. The port is bound and let
 * go again: workers share their listening ports (SO_REUSEPORT), so a second weir would not notice the first by itself.
 */
export async function findFreePort(host: string, wishedPort: number, reserved: ReadonlySet<number>): Promise<number> {
  let wish = wishedPort;
  for (;;) {
    while (reserved.has(wish)) wish += 1;
    const probe = createServer();
    const port = await listenNear(probe, host, wish);
    probe.close();
    await once(probe, 'close');
    if (!reserved.has(port)) return port;
    wish = port + 1;
  }
}
